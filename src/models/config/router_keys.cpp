#include "models/config/router_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "models/config/config_keys.h"

namespace snug::models {
namespace {

// What program/kinds/expert/route.h allows.
constexpr int64_t kMaxGroups = 64;

}  // namespace

void parse_router(const base::JsonObject& json, const RouterDefaults& defaults,
                  ModelConfig& config) {
  const auto count_key =
      key_present(json, {"num_experts", "num_local_experts", "n_routed_experts"});
  config.num_experts = positive_or(json, count_key, defaults.experts, kMaxExperts);
  config.chosen_experts = positive_or(json, "num_experts_per_tok", defaults.chosen, kMaxExperts);
  if (config.chosen_experts > config.num_experts)
    json.fail("num_experts_per_tok", fmt::format("is {}; the model has {} experts",
                                                 config.chosen_experts, config.num_experts));
  const double coefficient = json.number_or("router_aux_loss_coef", defaults.coefficient);
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

void parse_expert_groups(const base::JsonObject& json, ModelConfig& config) {
  config.expert_groups = positive_or(json, "n_group", 1, kMaxGroups);
  config.chosen_groups = positive_or(json, "topk_group", 1, kMaxGroups);
  if (config.chosen_groups > config.expert_groups)
    json.fail("topk_group", fmt::format("is {}; there are {} groups of experts",
                                        config.chosen_groups, config.expert_groups));
  if (config.expert_groups == 1) return;
  const int64_t width = config.num_experts / config.expert_groups;
  if (width * config.expert_groups != config.num_experts || width < 2)
    json.fail("n_group", fmt::format("is {}; the model has {} experts, of which each group has the "
                                     "same number, at least 2",
                                     config.expert_groups, config.num_experts));
  if (width * config.chosen_groups < config.chosen_experts)
    json.fail(
        "topk_group",
        fmt::format("is {}; so many groups have {} experts, and each token gets {}",
                    config.chosen_groups, width * config.chosen_groups, config.chosen_experts));
}

void parse_dense_layers(const base::JsonObject& json, ModelConfig& config) {
  const int64_t step = positive_or(json, "decoder_sparse_step", 1);
  std::vector<double> named;
  if (json.has("mlp_only_layers")) named = json.numbers("mlp_only_layers");
  for (const double layer : named)
    if (!(layer >= 0) || layer >= static_cast<double>(config.num_layers) ||
        layer != std::floor(layer))
      json.fail("mlp_only_layers", "names a layer that the model does not have");
  for (int64_t layer = 0; layer < config.num_layers; ++layer)
    if ((layer + 1) % step != 0 ||
        std::ranges::find(named, static_cast<double>(layer)) != named.end())
      config.dense_layers.push_back(layer);
}

void describe_dense_layers(const ModelConfig& config, nlohmann::json& json) {
  json["decoder_sparse_step"] = 1;
  json["mlp_only_layers"] = config.dense_layers;
}

}  // namespace snug::models
