// Errors. A user's mistake throws UserError and is caught only in main; a bug in Snug fails a
// CHECK, which prints both values and aborts. Expected outcomes are return values, never
// exceptions.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace snug::base {

// Where in the user's input a mistake lies. Lines and columns count from 1; 0 means unknown.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
};

// "file:line:column: " with the parts that are known; empty for an empty location.
std::string to_string(const Location& location);

// The location followed by the message. A NUL, which would end the text of an exception, is escaped
// as shown_text.h says.
std::string message_at(const Location& location, const std::string& message);

// A mistake of the user: what is wrong, what was expected, and the cheapest fix, in one paragraph.
class UserError : public std::runtime_error {
 public:
  static constexpr int kExitCode = 2;
  explicit UserError(const std::string& message, const Location& location = {},
                     int exit_code = kExitCode)
      : std::runtime_error(message_at(location, message)), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// throw_user_error("{} has {} rows", ...): UserError with a formatted message and no location.
template <typename... Args>
[[noreturn]] void throw_user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               const std::string& detail);

}  // namespace snug::base

// Aborts when a condition that Snug itself must guarantee does not hold. The remaining arguments
// are a fmt message.
#define SNUG_CHECK(condition, ...)                                                          \
  do {                                                                                      \
    if (!(condition))                                                                       \
      ::snug::base::check_failed(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
  } while (false)

#define SNUG_CHECK_EQ(a, b)                                                                 \
  do {                                                                                      \
    const auto snug_check_a = (a);                                                          \
    const auto snug_check_b = (b);                                                          \
    if (!(snug_check_a == snug_check_b))                                                    \
      ::snug::base::check_failed(__FILE__, __LINE__, #a " == " #b,                          \
                                 fmt::format("{} against {}", snug_check_a, snug_check_b)); \
  } while (false)
