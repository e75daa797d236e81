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
  double coefficient = 0.001;  // router_aux_loss_coef
};

// Parses num_experts, num_local_experts or n_routed_experts, num_experts_per_tok, and the keys of
// the loss that balances experts: router_aux_loss_coef, and whether training adds it
// (output_router_logits). Throws UserError for impossible values.
void parse_router(const base::JsonObject& json, const RouterDefaults& defaults,
                  ModelConfig& config);

// Parses n_group and topk_group. Throws UserError for groups that are not equal, that have fewer
// than two experts, or that have too few for each token.
void parse_expert_groups(const base::JsonObject& json, ModelConfig& config);

// Qwen's layers with one mlp instead of experts: those that mlp_only_layers names, and of the
// others all but every decoder_sparse_step-th.
void parse_dense_layers(const base::JsonObject& json, ModelConfig& config);
void describe_dense_layers(const ModelConfig& config, nlohmann::json& json);

// Writes the keys that parse_router reads, except for the number of experts, whose key differs
// between families.
void describe_router(const ModelConfig& config, nlohmann::json& json);

}  // namespace snug::models
