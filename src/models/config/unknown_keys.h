// Finds keys of a config.json that are not known.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace snug::models {

// The keys, sorted, that no family reads and that are not known to be irrelevant to the network.
// Keys whose value is null, false, 0 or empty are not listed.
std::vector<std::string> unknown_keys(const nlohmann::json& config);

}  // namespace snug::models
