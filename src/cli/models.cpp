// `snug models`: the built-in shapes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/verbs.h"
#include "models/config.h"
#include "models/weights.h"

namespace snug::cli {
namespace {

nlohmann::ordered_json to_json(const std::string& name, const models::ModelConfig& config) {
  return {{"name", name},
          {"parameters", models::parameter_count(config)},
          {"layers", config.num_layers},
          {"hidden", config.hidden_size},
          {"heads", config.num_heads},
          {"kv_heads", config.num_kv_heads},
          {"vocabulary", config.vocab_size},
          {"context", config.max_position}};
}

}  // namespace

int models(const Request& request) {
  if (!request.recipe_file.empty())
    base::throw_user_error("snug models takes no recipe; it lists the built-in shapes");
  auto list = nlohmann::ordered_json::array();
  if (!request.json)
    fmt::print("{:<16}{:>18}{:>8}{:>8}{:>7}{:>10}{:>12}{:>9}\n", "name", "parameters", "layers",
               "hidden", "heads", "kv_heads", "vocabulary", "context");
  for (const std::string& name : models::preset_names()) {
    const models::ModelConfig config = *models::preset(name);
    if (request.json)
      list.push_back(to_json(name, config));
    else
      fmt::print("{:<16}{:>18}{:>8}{:>8}{:>7}{:>10}{:>12}{:>9}\n", name,
                 models::parameter_count(config), config.num_layers, config.hidden_size,
                 config.num_heads, config.num_kv_heads, config.vocab_size, config.max_position);
  }
  if (request.json) fmt::print("{}\n", list.dump(2));
  return 0;
}

}  // namespace snug::cli
