// Where the content of a JSON string can be cut: not within a character, not within an escape, and
// not between the two escapes of one character (\ud83d\ude00).
#pragma once

namespace snug::text {

class JsonEscapes {
 public:
  // Takes the next byte of a string.
  void take(char c) {
    if (left_ > 0) {
      take_of_escape(c);
    } else if (c == '\\') {
      left_ = 1;
      is_code_ = false;
    } else {
      ends_in_high_half_ = false;
    }
  }

  // Whether the next byte belongs to an escape that has begun.
  bool is_within() const { return left_ > 0; }

  // Whether the string can be cut before `next`, which is not taken yet.
  bool is_boundary_before(char next) const {
    const bool continues = (static_cast<unsigned char>(next) & 0xC0U) == 0x80U;
    return left_ == 0 && !ends_in_high_half_ && !continues;
  }

 private:
  void take_of_escape(char c) {
    --left_;
    if (!is_code_) {
      ends_in_high_half_ = false;
      if (c != 'u') return;
      is_code_ = true;
      left_ = 4;
      is_surrogate_ = false;
    } else if (left_ == 3) {
      is_surrogate_ = c == 'd' || c == 'D';
    } else if (left_ == 2) {
      const bool is_high = c == '8' || c == '9' || c == 'a' || c == 'A' || c == 'b' || c == 'B';
      ends_in_high_half_ = is_surrogate_ && is_high;
    }
  }

  int left_ = 0;  // bytes of the escape that are still to come
  bool is_code_ = false;
  bool is_surrogate_ = false;
  bool ends_in_high_half_ = false;
};

}  // namespace snug::text
