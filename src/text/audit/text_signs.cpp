// Stages: each sign has a function that looks at one piece, or at the pieces in turn, and returns
// the words around what it found. What is judged is a document; whether there are enough of them to
// tell of is decided elsewhere (audit_findings.h).
#include "text/audit/text_signs.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "text/unicode/blank.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

constexpr size_t kAround = 24;  // bytes on either side of what is shown

// The words around bytes [begin, end) of a text, in whole characters.
std::string words_around(std::string_view text, size_t begin, size_t end) {
  size_t from = begin > kAround ? begin - kAround : 0;
  while (from < begin && is_inside_character(text[from])) ++from;
  size_t to = std::min(text.size(), end + kAround);
  while (to < text.size() && is_inside_character(text[to])) ++to;
  return std::string(text.substr(from, to - from));
}

using Around = std::optional<std::string>;

// The byte that Windows-1252, or Latin-1, writes a character as; nothing for other characters.
std::optional<uint8_t> windows_byte(char32_t value) {
  constexpr std::array<char32_t, 32> kHigh{
      0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
      0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
      0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};
  const auto* const high = std::ranges::find(kHigh, value);
  if (high != kHigh.end()) return static_cast<uint8_t>(0x80 + (high - kHigh.begin()));
  if (value >= 0x80 && value <= 0xFF) return static_cast<uint8_t>(value);
  return std::nullopt;
}

// Whether bytes that characters stand for begin UTF-8 that people meet: an accented letter or a
// sign of Latin-1 (C2, C3), a dash, a quotation mark or the like (E2 80, E2 82, E2 84), kana
// (E3 81 to 83), or two Cyrillic letters (D0, D1). Others are too like what people do write.
bool is_read_wrongly(std::span<const uint8_t> bytes) {
  const auto follows = [&](size_t i) { return i < bytes.size() && (bytes[i] & 0xC0U) == 0x80U; };
  if (!follows(1)) return false;
  const auto is_one_of = [&](uint8_t byte, std::initializer_list<uint8_t> set) {
    return std::ranges::find(set, byte) != set.end();
  };
  if (bytes[0] == 0xC3) return true;
  if (bytes[0] == 0xC2) return bytes[1] >= 0xA0;
  if (bytes[0] == 0xE2) return is_one_of(bytes[1], {0x80, 0x82, 0x84}) && follows(2);
  if (bytes[0] == 0xE3) return is_one_of(bytes[1], {0x81, 0x82, 0x83}) && follows(2);
  const auto is_cyrillic = [](uint8_t byte) { return byte == 0xD0 || byte == 0xD1; };
  return is_cyrillic(bytes[0]) && bytes.size() > 3 && is_cyrillic(bytes[2]) && follows(3);
}

Around find_mojibake(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint first = code_point_at(text, at);
    if (first.value >= 0xC2 && first.value <= 0xF4) {
      std::array<uint8_t, 4> bytes{};
      size_t count = 0;
      size_t end = at;
      while (count < bytes.size() && end < text.size()) {
        const CodePoint next = code_point_at(text, end);
        const auto byte = windows_byte(next.value);
        if (!byte) break;
        bytes[count++] = *byte;
        end += next.size;
      }
      if (is_read_wrongly(std::span(bytes).first(count))) return words_around(text, at, end);
    }
    at += first.size;
  }
  return std::nullopt;
}

Around find_any(std::string_view text, std::span<const std::string_view> wanted) {
  for (const std::string_view word : wanted)
    if (const size_t at = text.find(word); at != std::string_view::npos)
      return words_around(text, at, at + word.size());
  return std::nullopt;
}

Around find_html(std::string_view text) {
  constexpr auto kEscapes = std::to_array<std::string_view>(
      {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;", "&#x27;", "&#039;", "&apos;", "&nbsp;"});
  return find_any(text, kEscapes);
}

// Code writes \n in its own strings, but has line breaks next to them.
Around find_escaped_breaks(std::string_view text) {
  constexpr std::string_view kEscaped = "\\n";
  const size_t first = text.find(kEscaped);
  if (first == std::string_view::npos || text.find('\n') != std::string_view::npos)
    return std::nullopt;
  const size_t second = text.find(kEscaped, first + kEscaped.size());
  if (second == std::string_view::npos) return std::nullopt;
  return words_around(text, first, first + kEscaped.size());
}

bool is_ascii_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// {{name}}, a word alone in two braces.
Around find_placeholder(std::string_view text) {
  for (size_t at = text.find("{{"); at != std::string_view::npos; at = text.find("{{", at + 1)) {
    size_t end = at + 2;
    while (end < text.size() && (is_ascii_word(text[end]) || text[end] == '_')) ++end;
    if (end > at + 2 && text.substr(end).starts_with("}}")) return words_around(text, at, end + 2);
  }
  return std::nullopt;
}

Around find_glued(std::span<const DecodedPiece> pieces) {
  constexpr std::string_view kEndsWord = ".?!:;,)\"'";
  for (size_t i = 1; i < pieces.size(); ++i) {
    const DecodedPiece& before = pieces[i - 1];
    const DecodedPiece& answer = pieces[i];
    if (before.is_trained || !answer.is_trained || before.is_added || answer.is_added) continue;
    if (before.text.empty() || answer.text.empty()) continue;
    if (before.begin == 0 && before.end == 1) continue;  // the first token is never learned
    const char last = before.text.back();
    const bool ends_word = is_ascii_word(last) || kEndsWord.find(last) != std::string::npos;
    if (ends_word && is_ascii_word(answer.text.front()))
      return words_around(before.text + answer.text, before.text.size(), before.text.size());
  }
  return std::nullopt;
}

// Whether the message that begins after piece `i` has no word before the next added token.
bool is_empty_after(std::span<const DecodedPiece> pieces, size_t i) {
  size_t next = i + 1;
  while (next < pieces.size() && !pieces[next].is_added && is_blank(pieces[next].text)) ++next;
  return next < pieces.size() && pieces[next].is_added;
}

std::string_view without_blanks_around(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// <|im_start|>system\n<|im_end|>; <|start_header_id|>system<|end_header_id|>\n\n<|eot_id|>;
// <|system|>\n<|end|>; <<SYS>>\n\n<</SYS>>.
Around find_empty_system(std::span<const DecodedPiece> pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string_view word = without_blanks_around(pieces[i].text);
    bool is_empty = false;
    if (pieces[i].is_added && word.find("system") != std::string_view::npos)
      is_empty = is_empty_after(pieces, i);
    const bool is_role = i > 0 && pieces[i - 1].is_added && word == "system";
    if (is_role && pieces[i].text.back() == '\n')
      is_empty = is_empty_after(pieces, i);
    else if (is_role && i + 1 < pieces.size() && pieces[i + 1].is_added)
      is_empty = is_empty_after(pieces, i + 1);
    const size_t opens = word.find("<<SYS>>");
    if (opens != std::string_view::npos && word.find("<</SYS>>") != std::string_view::npos)
      is_empty = is_blank(word.substr(opens + 7, word.find("<</SYS>>") - opens - 7));
    if (is_empty) return std::string(word);
  }
  return std::nullopt;
}

// How tools mark the turns of a user, and what comes between two of them.
struct TurnMarks {
  std::string_view user;
  std::string_view assistant;
  std::string_view end;  // of a turn; empty: there is none
};
constexpr auto kTurnMarks = std::to_array<TurnMarks>(
    {{"<|im_start|>user", "<|im_start|>assistant", "<|im_end|>"},
     {"<|start_header_id|>user", "<|start_header_id|>assistant", "<|eot_id|>"},
     {"<start_of_turn>user", "<start_of_turn>model", "<end_of_turn>"},
     {"<|user|>", "<|assistant|>", ""},
     {"[INST]", "[/INST]", ""},
     {"### Instruction:", "### Response:", ""},
     {"### Human:", "### Assistant:", ""},
     {"### User:", "### Assistant:", ""},
     {"Human:", "\nAssistant:", ""},
     {"USER:", "ASSISTANT:", ""}});

Around find_whole_chat(std::span<const DecodedPiece> pieces, std::string_view text) {
  const auto is_prompt = [](const DecodedPiece& piece) {
    return !piece.is_trained && !piece.is_added && piece.end > 1;
  };
  if (std::ranges::any_of(pieces, is_prompt)) return std::nullopt;
  for (const TurnMarks& marks : kTurnMarks) {
    const size_t user = text.find(marks.user);
    if (user == std::string_view::npos) continue;
    const size_t assistant = text.find(marks.assistant, user);
    if (assistant != std::string_view::npos) return words_around(text, assistant, assistant);
  }
  return std::nullopt;
}

Around find_two_templates(std::string_view text) {
  for (const TurnMarks& marks : kTurnMarks) {
    if (marks.user.find_first_of("<[#") == std::string_view::npos) continue;  // words people write
    size_t last = text.find(marks.user);
    while (last != std::string_view::npos) {
      const size_t next = text.find(marks.user, last + marks.user.size());
      if (next == std::string_view::npos) break;
      const std::string_view between = text.substr(last, next - last);
      const bool has_end = !marks.end.empty() && between.find(marks.end) != std::string_view::npos;
      if (!has_end && between.find(marks.assistant) == std::string_view::npos)
        return words_around(text, next, next + marks.user.size());
      last = next;
    }
  }
  return std::nullopt;
}

// The end of a mark that begins at `at`; nothing where none does.
std::optional<size_t> end_of_mark(std::string_view text, size_t at) {
  constexpr size_t kLongest = 40;
  constexpr std::string_view kWide = "\xEF\xBD\x9C";  // the bar of DeepSeek's marks
  constexpr auto kWhole =
      std::to_array<std::string_view>({"</s>", "<eos>", "<start_of_turn>", "<end_of_turn>"});
  const std::string_view rest = text.substr(at, kLongest);
  for (const std::string_view mark : kWhole)
    if (rest.starts_with(mark)) return at + mark.size();
  for (const std::string_view bar : {std::string_view("|"), kWide}) {
    if (!rest.substr(1).starts_with(bar)) continue;
    const std::string closes = std::string(bar) + ">";
    const size_t close = rest.find(closes, 1 + bar.size());
    if (close == std::string_view::npos || close == 1 + bar.size()) return std::nullopt;
    if (rest.substr(0, close).find_first_of(" \n\t") != std::string_view::npos) return std::nullopt;
    return at + close + closes.size();
  }
  return std::nullopt;
}

}  // namespace

std::vector<FoundSign> find_signs(const std::vector<DecodedPiece>& pieces) {
  std::vector<FoundSign> found;
  std::set<TextSign> known;
  const auto note = [&](TextSign sign, const Around& around) {
    if (around && known.insert(sign).second) found.push_back({sign, *around});
  };
  std::string text;
  for (const DecodedPiece& piece : pieces) {
    text += piece.text;
    if (piece.is_added) continue;
    note(TextSign::mojibake, find_mojibake(piece.text));
    note(TextSign::replacement, find_any(piece.text, std::span(&kReplacementCharacter, 1)));
    note(TextSign::html, find_html(piece.text));
    note(TextSign::line_breaks, find_escaped_breaks(piece.text));
    if (piece.is_trained) note(TextSign::placeholders, find_placeholder(piece.text));
  }
  note(TextSign::glued, find_glued(pieces));
  note(TextSign::empty_system, find_empty_system(pieces));
  note(TextSign::whole_chat, find_whole_chat(pieces, text));
  note(TextSign::two_templates, find_two_templates(text));
  return found;
}

std::vector<SplitMark> find_split_marks(const std::vector<DecodedPiece>& pieces) {
  std::vector<SplitMark> marks;
  for (const DecodedPiece& piece : pieces) {
    if (piece.is_added) continue;
    const std::string_view text = piece.text;
    for (size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
      const auto end = end_of_mark(text, at);
      if (!end) continue;
      const std::string mark(text.substr(at, *end - at));
      auto known = std::ranges::find(marks, mark, &SplitMark::mark);
      if (known == marks.end()) known = marks.insert(marks.end(), {mark, false});
      if (piece.is_trained && is_blank(text.substr(*end))) known->ends_answer = true;
    }
  }
  return marks;
}

void SignCounts::add(int64_t document, const std::vector<DecodedPiece>& pieces) {
  ++looked_at;
  for (FoundSign& sign : find_signs(pieces)) {
    Count& count = signs[static_cast<size_t>(sign.sign)];
    if (count.documents++ > 0) continue;
    count.first = document;
    count.around = std::move(sign.around);
  }
  for (const SplitMark& split : find_split_marks(pieces)) {
    if (marks.size() >= kMostMarks && !marks.contains(split.mark)) continue;
    MarkCount& count = marks[split.mark];
    ++count.documents;
    if (split.ends_answer) ++count.ending;
  }
}

}  // namespace snug::text
