// The keys of config.json about routers, which families with experts share.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/json.h"
#include "models/config/config.h"

namespace snug::models {

// The meaning of absent keys.
struct RouterDefaults {
  int64_t experts = 0;
  int64_t chosen = 0;
};

// Parses num_experts or num_local_experts, num_experts_per_tok, and the keys of the loss that
// balances experts: router_aux_loss_coef, and whether training adds it (output_router_logits).
// Throws UserError for impossible values.
void parse_router(const base::JsonObject& json, const RouterDefaults& defaults,
                  ModelConfig& config);

// Writes these keys, except for the number of experts, whose key differs between families.
void describe_router(const ModelConfig& config, nlohmann::json& json);

}  // namespace snug::models
