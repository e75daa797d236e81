// Keys of config.json about routers, which families with experts share.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/json.h"
#include "models/config/config.h"

namespace snug::models {

// What an absent key means.
struct RouterDefaults {
  int64_t experts = 0;
  int64_t chosen = 0;
};

// num_experts or num_local_experts, num_experts_per_tok, and the loss that balances experts:
// router_aux_loss_coef, and whether training adds it (output_router_logits). Throws UserError for
// impossible values.
void parse_router(const base::JsonObject& json, const RouterDefaults& defaults,
                  ModelConfig& config);

// Writes these keys, except for the number of experts, which families call differently.
void describe_router(const ModelConfig& config, nlohmann::json& json);

}  // namespace snug::models
