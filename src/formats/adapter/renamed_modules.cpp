#include "formats/adapter/renamed_modules.h"

#include <array>

namespace snug::formats {
namespace {

struct RenamedModule {
  std::string_view own;
  std::string_view other;
};

constexpr std::array kRenamed{RenamedModule{"embed_out", "lm_head"}};
constexpr std::array<std::string_view, 2> kParts{".weight", ".bias"};

}  // namespace

std::vector<std::string> names_of(std::string_view tensor) {
  std::vector<std::string> names{std::string(tensor)};
  for (const RenamedModule& module : kRenamed)
    for (const std::string_view part : kParts)
      if (tensor.starts_with(module.own) && tensor.substr(module.own.size()) == part)
        names.push_back(std::string(module.other) + std::string(part));
  return names;
}

}  // namespace snug::formats
