#include "base/shown_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace snug::base {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// The length in bytes of the UTF-8 character that this lead byte opens; 0 where it opens none.
size_t opened_by(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

// A character, or a byte that belongs to no character, in its escaped form.
struct Shown {
  size_t taken = 0;  // the number of bytes of the text that it stands for
  std::array<char, 8> bytes{};
  size_t size = 0;

  std::string_view view() const { return {bytes.data(), size}; }
};

// Writes a backslash, a letter and `digits` hexadecimal digits.
void show_number(Shown& shown, char kind, uint32_t number, size_t digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  shown.bytes = {'\\', kind};
  shown.size = 2 + digits;
  for (size_t i = shown.size; i-- > 2; number >>= 4) shown.bytes[i] = kDigits[number & 0xFU];
}

// C0 controls except line breaks and tabs, DEL, C1 controls, line separators, and marks and
// overrides of direction.
bool is_hidden(uint32_t code) {
  if (code == '\n' || code == '\t') return false;
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x61C || code == 0x200E ||
         code == 0x200F || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

Shown shown_character(std::string_view text) {
  Shown shown;
  const auto lead = static_cast<unsigned char>(text.front());
  const size_t size = opened_by(lead);
  constexpr std::array<unsigned char, 5> kOfLead{0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t code = lead & kOfLead[size];
  bool is_whole = size > 0 && size <= text.size();
  for (size_t i = 1; is_whole && i < size; ++i) {
    is_whole = is_continuation(text[i]);
    code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  shown.taken = is_whole ? size : 1;
  if (!is_whole) {
    show_number(shown, 'x', lead, 2);
  } else if (is_hidden(code)) {
    show_number(shown, 'u', code, 4);
  } else {
    shown.size = text.copy(shown.bytes.data(), size);
  }
  return shown;
}

// The length in bytes of the last character, or 1 where the last byte ends no character.
size_t last_bytes(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && text.size() - begin < 4 && is_continuation(text[begin])) --begin;
  const size_t size = text.size() - begin;
  return shown_character(text.substr(begin)).taken == size ? size : 1;
}

}  // namespace

std::string shown_text(std::string_view text) {
  std::string all;
  all.reserve(text.size());
  while (!text.empty()) {
    const Shown shown = shown_character(text);
    all += shown.view();
    text.remove_prefix(shown.taken);
  }
  return all;
}

std::string with_shown_nuls(std::string text) {
  constexpr std::string_view kShown = "\\u0000";
  for (size_t at = text.find('\0'); at != std::string::npos; at = text.find('\0', at))
    text.replace(at, 1, kShown);
  return text;
}

ShownLine::ShownLine(std::string_view text, size_t most) noexcept {
  most = std::min(most, bytes_.size());
  if (add_beginning(text, most) == text.size()) return;
  // A message says at its beginning what is wrong and at its end what to do, so both ends are kept.
  constexpr size_t kNoteBytes = 64;
  size_ = 0;
  size_t taken = add_beginning(text, most - most / 4 - kNoteBytes);
  const size_t end = bytes_of_end(text.substr(taken), most / 4);
  taken += end;
  std::array<char, kNoteBytes> note{};
  const auto written = fmt::format_to_n(note.data(), note.size(), " ... ({} bytes left out) ... ",
                                        text.size() - taken)
                           .out;
  add({note.data(), static_cast<size_t>(written - note.data())});
  add_beginning(text.substr(text.size() - end), most - size_);
}

void ShownLine::add(std::string_view text) noexcept {
  size_ += text.copy(bytes_.data() + size_, bytes_.size() - size_);
}

size_t ShownLine::add_beginning(std::string_view text, size_t most) noexcept {
  const size_t before = size_;
  size_t taken = 0;
  while (taken < text.size()) {
    const Shown shown = shown_character(text.substr(taken));
    if (size_ - before + shown.size > most) break;
    add(shown.view());
    taken += shown.taken;
  }
  return taken;
}

size_t ShownLine::bytes_of_end(std::string_view text, size_t most) noexcept {
  size_t taken = 0;
  for (size_t size = 0; taken < text.size();) {
    const size_t bytes = last_bytes(text.substr(0, text.size() - taken));
    size += shown_character(text.substr(text.size() - taken - bytes)).size;
    if (size > most) break;
    taken += bytes;
  }
  return taken;
}

}  // namespace snug::base
