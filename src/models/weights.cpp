#include "models/weights.h"

#include <fmt/format.h>

namespace snug::models {
namespace {

// Collects weights of one layer: linears with an optional bias, norms.
class WeightList {
 public:
  void matrix(std::string name, int64_t rows, int64_t columns, int32_t layer) {
    weights_.push_back({std::move(name), {rows, columns}, layer, Initializer::normal});
  }
  void norm(std::string name, int64_t size, int32_t layer) {
    weights_.push_back({std::move(name), {size}, layer, Initializer::ones});
  }
  void linear(int64_t layer, const char* module, int64_t out, int64_t in, bool bias) {
    const auto index = static_cast<int32_t>(layer);
    matrix(layer_weight(layer, module), out, in, index);
    if (!bias) return;
    weights_.push_back({layer_bias(layer, module), {out}, index, Initializer::zeros});
  }
  std::vector<Weight> take() { return std::move(weights_); }

 private:
  std::vector<Weight> weights_;
};

}  // namespace

std::string layer_weight(int64_t layer, const char* module) {
  return fmt::format("model.layers.{}.{}.weight", layer, module);
}

std::string layer_bias(int64_t layer, const char* module) {
  return fmt::format("model.layers.{}.{}.bias", layer, module);
}

std::string head_name(const ModelConfig& config) {
  return config.tied_embeddings ? kEmbeddingWeight : kHeadWeight;
}

std::vector<Weight> weights_of(const ModelConfig& config) {
  WeightList list;
  const int64_t d = config.hidden_size;
  const int64_t q = config.num_heads * config.head_dim;
  const int64_t kv = config.num_kv_heads * config.head_dim;
  const int64_t ff = config.intermediate_size;
  list.matrix(kEmbeddingWeight, config.vocab_size, d, -1);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    list.norm(layer_weight(layer, modules::kAttentionNorm), d, static_cast<int32_t>(layer));
    if (config.fused_projections) {
      list.linear(layer, modules::kQueryKeyValue, q + 2 * kv, d, config.qkv_bias);
    } else {
      list.linear(layer, modules::kQuery, q, d, config.qkv_bias);
      list.linear(layer, modules::kKey, kv, d, config.qkv_bias);
      list.linear(layer, modules::kValue, kv, d, config.qkv_bias);
    }
    for (const char* norm : {modules::kQueryNorm, modules::kKeyNorm})
      if (config.qk_norm)
        list.norm(layer_weight(layer, norm), config.head_dim, static_cast<int32_t>(layer));
    list.linear(layer, modules::kAttentionOutput, d, q, config.output_bias);
    list.norm(layer_weight(layer, modules::kMlpNorm), d, static_cast<int32_t>(layer));
    if (config.fused_projections) {
      list.linear(layer, modules::kGateUp, 2 * ff, d, config.mlp_bias);
    } else {
      list.linear(layer, modules::kGate, ff, d, config.mlp_bias);
      list.linear(layer, modules::kUp, ff, d, config.mlp_bias);
    }
    list.linear(layer, modules::kDown, d, ff, config.mlp_bias);
  }
  list.norm(kFinalNormWeight, d, -1);
  if (!config.tied_embeddings) list.matrix(kHeadWeight, config.vocab_size, d, -1);
  return list.take();
}

int64_t parameter_count(const ModelConfig& config) {
  int64_t count = 0;
  for (const Weight& weight : weights_of(config)) count += weight.shape.elements();
  return count;
}

bool is_ignorable(const std::string& name, const ModelConfig& config) {
  if (name.ends_with(".rotary_emb.inv_freq")) return true;
  return config.tied_embeddings && name == kHeadWeight;
}

}  // namespace snug::models
