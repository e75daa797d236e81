// Divides an answer's text, as it comes, into what the model thought, what it says, and the tools
// that it calls. What may be the beginning of a mark is held back until that is decided, and a call
// until it is whole, so that nobody reads half of one. What only looks like a call stays text. The
// pieces together are the same however the text is cut. An object serves one answer and one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/answer/call_format.h"
#include "text/answer/thought_marks.h"

namespace snug::text {

// What may stand in an answer.
struct AnswerMarks {
  const ThoughtMarks* thought = nullptr;  // null: no thoughts
  bool begins_in_thought = false;
  const CallFormat* calls = nullptr;  // null: no calls
  std::vector<std::string> names{};   // of the tools
};

struct AnswerPiece {
  enum class Kind { thought, content, call };
  Kind kind = Kind::content;
  std::string text{};  // not of a call
  ToolCall call{};
};

class AnswerReader {
 public:
  explicit AnswerReader(AnswerMarks marks);

  std::vector<AnswerPiece> push(std::string_view text);
  // What is still held back.
  std::vector<AnswerPiece> finish();
  bool is_in_thought() const { return place_ == Place::thought; }

 private:
  enum class Place { beginning, thought, after_thought, answer, content, call, after_call };

  std::vector<AnswerPiece> read(bool at_end);
  bool step(bool at_end);
  bool step_beginning(bool at_end);
  bool step_thought(bool at_end);
  bool step_answer(bool at_end);
  bool step_content(bool at_end);
  bool step_call(bool at_end);
  bool step_after_call(bool at_end);
  bool take_call(size_t begin, size_t end, std::string_view name);
  bool refuse_call();
  size_t json_end(size_t begin);
  void give(AnswerPiece::Kind kind, std::string_view text);

  AnswerMarks marks_;
  Place place_;
  std::string held_{};
  std::string before_call_{};  // the blanks and the mark before a call
  bool has_thought_ = false;   // anything but blanks
  std::vector<AnswerPiece> pieces_{};
  // Of the JSON of a call: how far it was looked at, and what was seen.
  struct JsonScan {
    size_t at = 0;
    int depth = 0;
    bool in_text = false;
    bool is_escaped = false;
  };
  JsonScan scan_{};
};

}  // namespace snug::text
