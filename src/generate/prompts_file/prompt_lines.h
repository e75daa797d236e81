// The lines of a prompts file, one after another: JSON lines or a JSON list, a table, or plain text
// with a prompt in each line; packed or not (text/record/record_reader.h). One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "generate/prompts_file/line_reader.h"
#include "text/record/record_error.h"
#include "text/record/record_reader.h"

namespace snug::generate {

struct PromptLine {
  int64_t index = 0;  // from 0
  AskedLine asked{};
  std::optional<text::RecordError> error{};  // why it cannot be asked
  std::string written{};                     // as it stands in the file
};

class PromptLines {
 public:
  // Both must outlive the object.
  PromptLines(const std::string& path, LineReader& reader);

  // False at the end. Throws UserError for a file that cannot be read.
  bool next(PromptLine& line);

  // Passes over the first `count` lines.
  void skip(int64_t count);

 private:
  bool next_raw(text::RawRecord& raw);

  const std::string& path_;
  LineReader& reader_;
  text::RecordReader records_;
};

}  // namespace snug::generate
