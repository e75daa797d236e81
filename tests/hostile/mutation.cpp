#include "mutation.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

namespace snug::hostile {
namespace {

constexpr size_t kHeadBytes = 2048;
constexpr size_t kDepth = 100000;

class Mutator {
 public:
  explicit Mutator(std::mt19937_64& random) : random_(random) {}

  void damage(std::string& text) {
    using Damage = void (Mutator::*)(std::string&);
    static constexpr std::array<Damage, 10> kDamages{
        &Mutator::flip_bit, &Mutator::replace_byte,   &Mutator::cut_out,
        &Mutator::repeat,   &Mutator::zero,           &Mutator::cut_off,
        &Mutator::exchange, &Mutator::replace_number, &Mutator::replace_number,
        &Mutator::nest};
    (this->*kDamages[pick(kDamages.size())])(text);
  }

  size_t pick(size_t bound) { return static_cast<size_t>(random_() % bound); }

 private:
  size_t place(const std::string& text) {
    return pick(pick(2) == 0 ? std::min(text.size(), kHeadBytes) : text.size());
  }
  // Short pieces more often than long ones.
  size_t length() { return 1 + pick(size_t{1} << pick(10)); }

  void flip_bit(std::string& text) { text[place(text)] ^= static_cast<char>(1 << pick(8)); }
  void replace_byte(std::string& text) {
    constexpr std::string_view kPool{"{}[]\",:0123456789.-+eE\\u\n\t \0\x80\xC3\xED\xFF", 31};
    text[place(text)] = kPool[pick(kPool.size())];
  }
  void cut_out(std::string& text) { text.erase(place(text), length()); }
  void repeat(std::string& text) {
    const size_t at = place(text);
    text.insert(at, text.substr(at, length()));
  }
  void zero(std::string& text) {
    const size_t at = place(text);
    const size_t bytes = std::min(length(), text.size() - at);
    std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(at), bytes, '\0');
  }
  void cut_off(std::string& text) { text.resize(place(text)); }
  void exchange(std::string& text) {
    const std::string piece = text.substr(place(text), length());
    const size_t at = place(text);
    text.replace(at, piece.size(), piece);
  }
  void replace_number(std::string& text) {
    constexpr std::array<const char*, 16> kExtremes{"0",          "-1",
                                                    "1",          "2147483647",
                                                    "4294967296", "9223372036854775807",
                                                    "1e308",      "1e-320",
                                                    "-0.0",       "1e999",
                                                    "null",       "18446744073709551615",
                                                    "0.1",        "true",
                                                    "\"\"",       "-9223372036854775808"};
    const size_t from = place(text);
    const size_t begin = text.find_first_of("0123456789", from);
    if (begin == std::string::npos) return;
    size_t end = text.find_first_not_of("0123456789.eE+-", begin);
    if (end == std::string::npos) end = text.size();
    text.replace(begin, end - begin, kExtremes[pick(kExtremes.size())]);
  }
  void nest(std::string& text) {
    constexpr std::array<const char*, 4> kOpenings{"[", "{\"a\":", "(", "- "};
    const std::string opening = kOpenings[pick(kOpenings.size())];
    std::string deep;
    for (size_t i = 0; i < kDepth; ++i) deep += opening;
    text.insert(place(text), deep);
  }

  std::mt19937_64& random_;
};

}  // namespace

std::string mutated(std::string text, std::mt19937_64& random) {
  Mutator mutator(random);
  for (size_t damages = 1 + mutator.pick(3); damages > 0 && !text.empty(); --damages)
    mutator.damage(text);
  return text;
}

}  // namespace snug::hostile
