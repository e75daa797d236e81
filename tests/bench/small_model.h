// Shapes of small models of the family llama, for tests of measuring.
#pragma once

#include "models/config/config.h"

namespace snug::bench {

struct SmallShape {
  int64_t hidden;
  int64_t layers;
  int64_t heads;
  int64_t kv_heads;
  int64_t mlp;
  int64_t vocab;
};

inline models::ModelConfig small_model(const SmallShape& shape) {
  models::ModelConfig model;
  model.model_type = "llama";
  model.hidden_size = shape.hidden;
  model.num_layers = shape.layers;
  model.num_heads = shape.heads;
  model.num_kv_heads = shape.kv_heads;
  model.head_dim = shape.hidden / shape.heads;
  model.intermediate_size = shape.mlp;
  model.vocab_size = shape.vocab;
  model.max_position = 1024;
  return model;
}

}  // namespace snug::bench
