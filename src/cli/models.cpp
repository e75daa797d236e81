// `snug models`: the built-in shapes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/console.h"
#include "base/error.h"
#include "cli/verbs.h"
#include "models/config/config.h"
#include "models/config/config_keys.h"
#include "models/weights.h"

namespace snug::cli {
namespace {

// Whether rows can be longer than the model allows.
bool has_limit(const models::ModelConfig& config) {
  return config.max_position < models::kMaxPositions;
}

nlohmann::ordered_json to_json(const std::string& name, const models::ModelConfig& config) {
  return {{"name", name},
          {"parameters", models::parameter_count(config)},
          {"layers", config.num_layers},
          {"hidden", config.hidden_size},
          {"heads", config.num_heads},
          {"kv_heads", config.num_kv_heads},
          {"vocabulary", config.vocab_size},
          {"context", has_limit(config) ? nlohmann::ordered_json(config.max_position)
                                        : nlohmann::ordered_json(nullptr)}};
}

std::string context(const models::ModelConfig& config) {
  return has_limit(config) ? fmt::format("{}", config.max_position) : "any";
}

}  // namespace

int models(const Request& request) {
  if (!request.recipe_file.empty())
    base::throw_user_error("snug models takes no recipe; it lists the built-in shapes");
  auto list = nlohmann::ordered_json::array();
  if (!request.json)
    base::print("{:<16}{:>18}{:>8}{:>8}{:>7}{:>10}{:>12}{:>9}\n", "name", "parameters", "layers",
                "hidden", "heads", "kv_heads", "vocabulary", "context");
  for (const std::string& name : models::preset_names()) {
    const models::ModelConfig config = *models::preset(name);
    if (request.json)
      list.push_back(to_json(name, config));
    else
      base::print("{:<16}{:>18}{:>8}{:>8}{:>7}{:>10}{:>12}{:>9}\n", name,
                  models::parameter_count(config), config.num_layers, config.hidden_size,
                  config.num_heads, config.num_kv_heads, config.vocab_size, context(config));
  }
  if (request.json) base::print("{}\n", list.dump(2));
  return 0;
}

}  // namespace snug::cli
