// Templates that ask for more than a machine has: random ones, of every filter, test, method,
// operator and statement, with hostile arguments.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace snug::text::jinja {

class BombMaker {
 public:
  explicit BombMaker(uint32_t seed) : random_(seed) {}

  std::string next();

 private:
  size_t pick(size_t bound) { return static_cast<size_t>(random_()) % bound; }
  template <typename Choices>
  std::string one_of(const Choices& choices) {
    return std::string(choices[pick(std::size(choices))]);
  }
  // Of one type, mostly; `depth` says how much is within it.
  std::string number(int depth);
  std::string text(int depth);
  std::string list(int depth);
  std::string condition(int depth);
  std::string value(int depth);
  // A filter, a method or a test of any kind, with any arguments.
  std::string anything(int depth);
  std::string arguments(int depth);
  std::string statement(int depth);
  std::string body(int depth);

  std::mt19937 random_;
};

}  // namespace snug::text::jinja
