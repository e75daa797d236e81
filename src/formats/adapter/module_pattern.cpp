#include "formats/adapter/module_pattern.h"

#include <fmt/format.h>

namespace snug::formats {

std::string last_parts_pattern(std::string_view pattern) {
  return fmt::format(R"((.*\.)?({}))", pattern);
}

bool is_module_pattern(std::string_view text) {
  for (const char c : text) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_letter && !is_digit && c != '_' && c != '-' && c != '.') return true;
  }
  return false;
}

}  // namespace snug::formats
