#include "models/config/router_keys.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/config/config_keys.h"

namespace snug::models {

void parse_router(const base::JsonObject& json, const RouterDefaults& defaults,
                  ModelConfig& config) {
  const auto count_key = key_present(json, {"num_experts", "num_local_experts"});
  config.num_experts = positive_or(json, count_key, defaults.experts, kMaxExperts);
  config.chosen_experts = positive_or(json, "num_experts_per_tok", defaults.chosen, kMaxExperts);
  if (config.chosen_experts > config.num_experts)
    json.fail("num_experts_per_tok", fmt::format("is {}; the model has {} experts",
                                                 config.chosen_experts, config.num_experts));
  const double coefficient = json.number_or("router_aux_loss_coef", 0.001);
  if (!(coefficient >= 0) || !std::isfinite(coefficient))
    json.fail("router_aux_loss_coef",
              fmt::format("is {}; expected a number of at least 0", coefficient));
  config.router_loss = json.boolean_or("output_router_logits", false);
  config.router_coefficient = coefficient;
}

void describe_router(const ModelConfig& config, nlohmann::json& json) {
  json["num_experts_per_tok"] = config.chosen_experts;
  json["output_router_logits"] = config.router_loss;
  json["router_aux_loss_coef"] = config.router_coefficient;
}

}  // namespace snug::models
