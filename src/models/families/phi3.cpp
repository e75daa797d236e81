// The phi3 family: Phi-3 mini and medium, Phi-4, Phi-4-mini. One tensor holds q, k and v, and one
// holds gate and up; every layer may have a sliding window; positions are rotated as in llama or,
// in the 128k models, by longrope; Phi-4-mini rotates three quarters of each head.
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

Stack stack(const ModelConfig& config) {
  return decoder(config, [&](int64_t layer) {
    AttentionBlock fused = attention(config, layer);
    fused.query_key_value.fused = "self_attn.qkv_proj";
    GatedMlp mlp = gated_mlp(config);
    mlp.gate_up.fused = "mlp.gate_up_proj";
    return pre_norm_layer(config, std::move(fused), std::move(mlp));
  });
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.max_position = 4096, .norm_epsilon = 1e-5});
  config.partial_rotary_factor = parse_partial_rotary(json, config.head_dim, 1.0);
  config.rope = parse_longrope(json, config);
  set_window(config, parse_window(json, 0));
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  describe_window(config, json);
  json["partial_rotary_factor"] = config.partial_rotary_factor;
  json["original_max_position_embeddings"] = config.rope.scaling == RopeScaling::longrope
                                                 ? config.rope.original_max_position
                                                 : config.max_position;
}

// longrope's divisors in Phi-3-mini-128k, rounded to fp32's precision: 48 = head_dim / 2 in each
// set.
constexpr std::array kPhi3MiniShort{
    1.05, 1.05, 1.05, 1.1, 1.1, 1.15, 1.2,  1.25, 1.3,  1.35, 1.5, 2.0, 2.0,  2.0,  2.0,  2.0,
    2.0,  2.0,  2.0,  2.0, 2.0, 2.0,  2.0,  2.0,  2.0,  2.0,  2.0, 2.0, 2.0,  2.0,  2.0,  2.0,
    2.05, 2.05, 2.05, 2.1, 2.1, 2.1,  2.15, 2.15, 2.35, 2.55, 2.6, 2.6, 2.75, 2.85, 2.85, 2.95};
constexpr std::array kPhi3MiniLong{
    1.03,      1.05,      1.05,      1.0799999,  1.2299999, 1.2299999, 1.3,       1.4499999,
    1.5999999, 1.6499999, 1.8999999, 2.86,       3.6899998, 5.4199996, 5.49,      5.49,
    9.09,      11.58,     15.66,     15.7699995, 15.79,     18.36,     21.99,     23.08,
    30.009998, 32.350002, 32.590004, 35.560005,  39.950005, 53.840004, 56.200005, 57.950005,
    59.290005, 59.770004, 59.920006, 61.190006,  61.960007, 62.500008, 63.370007, 63.480007,
    63.480007, 63.660007, 63.850006, 64.08001,   64.76001,  64.80001,  64.81001,  64.81001};

// The same of Phi-4-mini, which divides no frequency of short sequences: 48 = 3/4 head_dim / 2.
constexpr std::array kPhi4MiniLong{
    1.0,         1.118320672, 1.250641126, 1.398617824, 1.564103225, 1.74916897,  1.956131817,
    2.187582649, 2.446418898, 2.735880826, 3.059592084, 3.421605075, 3.826451687, 4.279200023,
    4.785517845, 5.351743533, 5.984965424, 6.693110555, 7.485043894, 8.370679318, 9.36110372,
    10.4687158,  11.70738129, 13.09260651, 14.64173252, 16.37415215, 18.31155283, 20.47818807,
    22.90118105, 25.61086418, 28.64115884, 32.03,       32.1,        32.13,       32.23,
    32.6,        32.61,       32.64,       32.66,       32.7,        32.71,       32.93,
    32.97,       33.28,       33.49,       33.5,        44.16,       47.77};

// Sets longrope with these factors, which were trained on sequences of 4096 tokens.
void longrope(ModelConfig& config, std::span<const double> short_factors,
              std::span<const double> long_factors) {
  set_window(config, 262144);
  RopeConfig& rope = config.rope;
  rope.scaling = RopeScaling::longrope;
  rope.original_max_position = 4096;
  rope.short_factors.assign(short_factors.begin(), short_factors.end());
  rope.long_factors.assign(long_factors.begin(), long_factors.end());
  const double factor = static_cast<double>(config.max_position) / 4096.0;
  rope.attention_factor = longrope_attention_factor(factor, rope.original_max_position);
}

void phi_3_mini_128k(ModelConfig& config) { longrope(config, kPhi3MiniShort, kPhi3MiniLong); }

void phi_4_mini(ModelConfig& config) {
  config.partial_rotary_factor = 0.75;
  const std::vector<double> undivided(kPhi4MiniLong.size(), 1.0);
  longrope(config, undivided, kPhi4MiniLong);
}

void window_2047(ModelConfig& config) { set_window(config, 2047); }

constexpr std::array kPresets{
    Preset{"phi-3-medium-4k", 5120, 40, 40, 10, 128, 17920, 32064, 4096, 1e-5F, 1e4, false,
           window_2047},
    Preset{"phi-3-mini-128k", 3072, 32, 32, 32, 96, 8192, 32064, 131072, 1e-5F, 1e4, false,
           phi_3_mini_128k},
    Preset{"phi-3-mini-4k", 3072, 32, 32, 32, 96, 8192, 32064, 4096, 1e-5F, 1e4, false,
           window_2047},
    Preset{"phi-4", 5120, 40, 40, 10, 128, 17920, 100352, 16384, 1e-5F, 25e4, false},
    Preset{"phi-4-mini", 3072, 32, 24, 8, 128, 8192, 200064, 131072, 1e-5F, 1e4, true, phi_4_mini},
};

}  // namespace

const Family kPhi3{"phi3",   "Phi3ForCausalLM",         stack, parse, describe,
                   kPresets, "Phi-3, Phi-4, Phi-4-mini"};

}  // namespace snug::models
