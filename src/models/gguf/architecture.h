// What a model is in a GGUF file, as llama.cpp reads it: the name of its architecture, its
// hyper-parameters, and where each of the file's tensors comes from. The same table serves both
// directions. Pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "formats/gguf/metadata.h"
#include "models/config/config.h"

namespace snug::models {

// How the values of a GGUF tensor follow from those of the folder's.
enum class GgufChange : uint8_t {
  none,
  rotary_halves,  // the rows of each head in llama.cpp's order of rotary pairs (q and k of llama)
  plus_one,       // a norm whose folder holds its weight less one (gemma)
  transposed,     // (in, out) in the folder (gpt2)
};

struct GgufTensor {
  std::string name;            // "blk.0.attn_q.weight"
  std::vector<int64_t> shape;  // (out, in)
  // The folder's tensors of which it consists, one after another along the first axis: one tensor;
  // a matrix of each expert; or several that llama.cpp wants in one.
  std::vector<std::string> sources;
  GgufChange change = GgufChange::none;
  int64_t heads = 0;        // for rotary_halves
  bool keeps_fp32 = false;  // whatever the file's type: norms, biases, routers
  // The values of a tensor that no folder has (rotary factors).
  std::vector<float> values{};
};

struct GgufModel {
  std::string architecture;            // "llama", "qwen2", ...
  formats::Metadata hyper_parameters;  // "llama.block_count", ...
  std::vector<GgufTensor> tensors;     // in the order of the model
};

// `config_json`: the folder's config.json. Throws UserError for a model that llama.cpp has no
// architecture for.
GgufModel gguf_model(const ModelConfig& config, const nlohmann::json& config_json);

}  // namespace snug::models
