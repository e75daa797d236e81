// What a model is in a GGUF file, as llama.cpp reads it: the name of its architecture, its
// hyper-parameters, and where each of the file's tensors comes from. The same table serves both
// directions. Pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/metadata.h"
#include "models/config/config.h"
#include "models/gguf/gguf_part.h"

namespace snug::models {

struct GgufTensor {
  std::string name;            // "blk.0.attn_q.weight"
  std::vector<int64_t> shape;  // the slowest axis first: (out, in)
  // Elements of the folder's tensors, one part after another; each holds whole rows.
  std::vector<GgufPart> parts;
  // A value of the file is (the folder's value + added) * factor: a norm whose folder holds its
  // weight less one, and scales that llama.cpp does not have.
  float added = 0.0F;
  float factor = 1.0F;
  bool is_rate = false;     // a value of the file is -exp(the folder's value)
  bool keeps_fp32 = false;  // whatever the file's type: norms, biases, routers
  // The values of a tensor that no folder has, which then has no parts: rotary factors.
  std::vector<float> values{};
};

// What files have in their metadata and folders in tensors of one element each: the numbers that
// activations learn, an array of one for each layer.
struct GgufNumbers {
  std::string key;                   // "xielu.alpha_p"
  std::vector<std::string> sources;  // the folder's tensors
};

struct GgufModel {
  std::string architecture;            // "llama", "qwen2", ...
  formats::Metadata hyper_parameters;  // "llama.block_count", ...
  std::vector<GgufTensor> tensors;     // in the order of the model
  std::vector<GgufNumbers> numbers;
  // Tensors that files of others may hold although the model does not read them.
  std::vector<std::string> ignored;
  // What llama.cpp computes in another way than the model was trained, each a sentence.
  std::vector<std::string> differences;
};

// `config_json`: the folder's config.json. Throws UserError for a model that llama.cpp does not
// run, or not with these settings, naming them.
GgufModel gguf_model(const ModelConfig& config, const nlohmann::json& config_json);

// The families of Snug (model_type) whose files have this architecture: "llama" is that of llama,
// mistral and mixtral. Empty: none.
std::vector<std::string_view> families_of_architecture(std::string_view architecture);
// All architectures for messages: "llama, qwen2, ...".
std::string architecture_names();

}  // namespace snug::models
