// Families that users tune elsewhere and that Snug lacks, with what each would need. A config.json
// of one of them is refused with that; docs/models.md lists them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace snug::models {

struct MissingFamily {
  std::string_view model_type;  // in config.json, or in that of the text part
  std::string_view models;      // the published models: "LFM2, LFM2.5"
  std::string_view needs;       // "gated short convolutions in the place of attention"
};

std::span<const MissingFamily> missing_families();
const MissingFamily* find_missing_family(std::string_view model_type);

// What a message says of a model of this family, after its model_type.
std::string say_missing(const MissingFamily& family);

}  // namespace snug::models
