// A folder as gpt-oss is published, with random weights and experts in MXFP4.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/folder/safetensors_writer.h"
#include "formats/quantization/mxfp4.h"
#include "models/config/config.h"
#include "models/families/families.h"
#include "models/weights.h"

namespace snug::testing {

inline nlohmann::json mxfp4_config() {
  return {{"architectures", {"GptOssForCausalLM"}},
          {"model_type", "gpt_oss"},
          {"vocab_size", 24},
          {"hidden_size", 64},
          {"intermediate_size", 32},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"head_dim", 8},
          {"num_local_experts", 3},
          {"num_experts_per_tok", 2},
          {"max_position_embeddings", 64},
          {"quantization_config",
           {{"quant_method", "mxfp4"}, {"modules_to_not_convert", {"lm_head"}}}}};
}

inline models::Stack mxfp4_stack() {
  nlohmann::json config = mxfp4_config();
  config.erase("quantization_config");
  return models::stack_of(models::parse_config(config.dump(), "config.json"));
}

inline std::vector<int64_t> dims_of_weight(const models::Weight& weight) {
  std::vector<int64_t> dims;
  for (int axis = 0; axis < weight.shape.rank(); ++axis) dims.push_back(weight.shape[axis]);
  return dims;
}

// Random bytes: every code, scales of small numbers, and bf16 that is finite.
inline void fill_mxfp4(std::vector<uint8_t>& bytes, const formats::TensorSpec& spec,
                       uint8_t most_scale, std::mt19937& random) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(random());
    if (spec.name.ends_with("_scales")) bytes[i] = static_cast<uint8_t>(100 + bytes[i] % 28);
    if (spec.dtype == base::DType::bf16 && i % 2 == 1) bytes[i] &= 0x3fU;
  }
  if (spec.name.ends_with("_scales")) bytes.back() = most_scale;
}

// The folder's tensors, in the published form; `change` may alter what is declared.
using ChangeSpecs = std::function<void(std::vector<formats::TensorSpec>&)>;
inline void make_mxfp4_folder(const std::filesystem::path& folder, const ChangeSpecs& change = {},
                              uint8_t last_scale = 120) {
  std::filesystem::create_directories(folder);
  base::write_file_atomically(folder / "config.json", mxfp4_config().dump());
  base::write_file_atomically(folder / "tokenizer_config.json", "{}");
  std::vector<formats::TensorSpec> specs;
  for (const models::Weight& weight : models::file_weights_of(mxfp4_stack())) {
    const std::vector<int64_t> dims = dims_of_weight(weight);
    if (!weight.is_expert || dims.size() < 3) {
      specs.push_back({weight.name, base::DType::bf16, dims});
      continue;
    }
    const int64_t blocks = dims[1] / formats::kMxfp4BlockSize;
    specs.push_back({weight.name + "_blocks",
                     base::DType::u8,
                     {dims[0], dims[2], blocks, formats::kMxfp4BlockBytes}});
    specs.push_back({weight.name + "_scales", base::DType::u8, {dims[0], dims[2], blocks}});
  }
  if (change) change(specs);
  formats::SafetensorsWriter writer(folder / "model.safetensors", specs);
  std::mt19937 random(5);
  for (const formats::TensorSpec& spec : specs) {
    std::vector<uint8_t> bytes(static_cast<size_t>(spec.bytes()));
    fill_mxfp4(bytes, spec, last_scale, random);
    writer.write(spec.name, bytes.data(), spec.bytes());
  }
  writer.finish();
}

}  // namespace snug::testing
