#include "program/ir/program_name.h"

#include <fmt/format.h>

#include <charconv>

namespace snug::program {

std::string name_of(const ProgramKey& key) {
  if (key.size == 0) return std::string(name_of(key.name));
  return fmt::format("{}.{}", name_of(key.name), key.size);
}

std::optional<ProgramKey> program_key(std::string_view name) {
  const size_t dot = name.find('.');
  const std::optional<ProgramName> word = base::from_word<ProgramName>(name.substr(0, dot));
  if (!word) return std::nullopt;
  ProgramKey key(*word);
  if (dot == std::string_view::npos) return key;
  const bool has_sizes = *word == ProgramName::prefill || *word == ProgramName::decode;
  if (!has_sizes || dot + 1 == name.size() || name[dot + 1] == '0') return std::nullopt;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + dot + 1, end, key.size);
  if (error != std::errc() || rest != end || key.size <= 0) return std::nullopt;
  return key;
}

}  // namespace snug::program
