#include "program/ir/program_name.h"

#include <fmt/format.h>

#include <charconv>

namespace snug::program {

std::string name_of(const ProgramKey& key) {
  if (key.sequences == 0) return std::string(name_of(key.name));
  return fmt::format("{}.{}", name_of(key.name), key.sequences);
}

std::optional<ProgramKey> program_key(std::string_view name) {
  const size_t dot = name.find('.');
  const std::optional<ProgramName> word = base::from_word<ProgramName>(name.substr(0, dot));
  if (!word) return std::nullopt;
  ProgramKey key(*word);
  if (dot == std::string_view::npos) return key;
  if (*word != ProgramName::decode || dot + 1 == name.size() || name[dot + 1] == '0')
    return std::nullopt;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + dot + 1, end, key.sequences);
  if (error != std::errc() || rest != end || key.sequences <= 0) return std::nullopt;
  return key;
}

}  // namespace snug::program
