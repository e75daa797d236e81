#include "base/error.h"

#include <cstdlib>

#include "base/console.h"
#include "base/shown_text.h"

namespace snug::base {

std::string to_string(const Location& location) {
  if (location.file.empty()) return "";
  if (location.line == 0) return location.file + ": ";
  if (location.column == 0) return fmt::format("{}:{}: ", location.file, location.line);
  return fmt::format("{}:{}:{}: ", location.file, location.line, location.column);
}

std::string message_at(const Location& location, const std::string& message) {
  return with_shown_nuls(to_string(location) + message);
}

void check_failed(const char* file, int line, const char* expression, const std::string& detail) {
  say("{}:{}: CHECK failed: {} ({})\nThis is a bug in snug, please report it.", file, line,
      expression, detail);
  std::abort();
}

}  // namespace snug::base
