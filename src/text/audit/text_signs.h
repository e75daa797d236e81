// Signs in the text of documents that something went wrong before they came here: text that was
// decoded or escaped twice, marks of a chat template that the tokenizer has no token for, a prompt
// and an answer without a space between them. Pure functions over decoded pieces.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "text/audit/decoded_pieces.h"

namespace snug::text {

enum class TextSign : uint8_t {
  mojibake,       // UTF-8 that was read as Latin-1 or Windows-1252: "cafÃ©", "donâ€™t"
  replacement,    // U+FFFD, which stands for bytes that nobody could read
  html,           // &amp; &quot; &#39;
  line_breaks,    // the two characters \n in place of line breaks
  placeholders,   // places that were to be filled: {{name}}
  glued,          // the answer begins with a letter right after a letter of the prompt
  empty_system,   // a system message without a word
  whole_chat,     // all is learned of a text that has turns of a user and an assistant
  two_templates,  // the marks of a turn stand twice in a row
};
constexpr auto words_of(TextSign) {
  return base::words<TextSign>({{TextSign::mojibake, "mojibake"},
                                {TextSign::replacement, "replacement_characters"},
                                {TextSign::html, "html_escapes"},
                                {TextSign::line_breaks, "escaped_line_breaks"},
                                {TextSign::placeholders, "placeholders"},
                                {TextSign::glued, "glued_answers"},
                                {TextSign::empty_system, "empty_system"},
                                {TextSign::whole_chat, "chats_learned_whole"},
                                {TextSign::two_templates, "template_applied_twice"}});
}
inline constexpr size_t kTextSigns = base::kWordsOf<TextSign>.size();

// A sign in a document, with the words around it.
struct FoundSign {
  TextSign sign;
  std::string around{};
};

// Each sign at most once.
std::vector<FoundSign> find_signs(const std::vector<DecodedPiece>& pieces);

// Marks such as <|im_end|> or <start_of_turn> that stand in the text as letters, not as one token.
struct SplitMark {
  std::string mark{};
  bool ends_answer = false;  // something that is learned ends with it
};
std::vector<SplitMark> find_split_marks(const std::vector<DecodedPiece>& pieces);

// What was found in the documents that were looked at.
struct SignCounts {
  struct Count {
    int64_t documents = 0;
    int64_t first = 0;  // the first such document
    std::string around{};
  };
  struct MarkCount {
    int64_t documents = 0;
    int64_t ending = 0;  // those in which it ends what is learned
  };
  int64_t looked_at = 0;
  std::array<Count, kTextSigns> signs{};
  std::map<std::string, MarkCount> marks{};  // at most kMostMarks

  void add(int64_t document, const std::vector<DecodedPiece>& pieces);
  const Count& of(TextSign sign) const { return signs[static_cast<size_t>(sign)]; }
  static constexpr size_t kMostMarks = 64;
};

}  // namespace snug::text
