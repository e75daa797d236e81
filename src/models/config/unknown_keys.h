// Keys of a config.json that nothing here knows of.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace snug::models {

// Of those whose value is more than null, false, 0 or empty the ones that no family reads and that
// are not known to have no part in a network, sorted.
std::vector<std::string> unknown_keys(const nlohmann::json& config);

}  // namespace snug::models
