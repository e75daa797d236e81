#include "runtime/save_model.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "formats/directory_transaction.h"
#include "formats/hf_folder.h"
#include "models/weights.h"
#include "runtime/save_tensors.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using models::ModelConfig;
using models::RopeScaling;
using nlohmann::json;
using program::DType;

constexpr const char* kStem = "model";

// As torch names them.
std::string_view torch_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float32";
    case DType::bf16:
      return "bfloat16";
    default:
      SNUG_CHECK(false, "weights are not saved as {}", base::name_of(dtype));
      return {};
  }
}

json rope_scaling(const models::RopeConfig& rope) {
  if (rope.scaling == RopeScaling::none) return nullptr;
  json scaling{{"rope_type", rope.scaling == RopeScaling::linear ? "linear" : "llama3"},
               {"factor", rope.factor}};
  if (rope.scaling == RopeScaling::llama3) {
    scaling["low_freq_factor"] = rope.low_freq_factor;
    scaling["high_freq_factor"] = rope.high_freq_factor;
    scaling["original_max_position_embeddings"] = rope.original_max_position;
  }
  return scaling;
}

// The double whose decimal form is the shortest that gives this float: 1e-05, not 9.99999975e-06.
double as_written(float value) { return std::stod(fmt::format("{}", value)); }

// The source's config.json with the element type of what is saved.
std::string updated_config(const fs::path& path, DType dtype) {
  json config = base::read_json_file(path);
  // transformers 5 writes "dtype", earlier ones "torch_dtype"; both read the latter.
  const bool has_new_key = config.contains("dtype");
  if (has_new_key) config["dtype"] = torch_name(dtype);
  if (!has_new_key || config.contains("torch_dtype")) config["torch_dtype"] = torch_name(dtype);
  return config.dump(2) + "\n";
}

}  // namespace

std::string config_json(const ModelConfig& config, DType dtype) {
  SNUG_CHECK_EQ(config.model_type, std::string("llama"));
  const json document{{"architectures", {"LlamaForCausalLM"}},
                      {"model_type", config.model_type},
                      {"hidden_act", "silu"},
                      {"hidden_size", config.hidden_size},
                      {"intermediate_size", config.intermediate_size},
                      {"num_hidden_layers", config.num_layers},
                      {"num_attention_heads", config.num_heads},
                      {"num_key_value_heads", config.num_kv_heads},
                      {"head_dim", config.head_dim},
                      {"vocab_size", config.vocab_size},
                      {"max_position_embeddings", config.max_position},
                      {"rms_norm_eps", as_written(config.norm_epsilon)},
                      {"rope_theta", config.rope.theta},
                      {"rope_scaling", rope_scaling(config.rope)},
                      {"attention_bias", config.attention_bias},
                      {"attention_dropout", 0.0},
                      {"mlp_bias", config.mlp_bias},
                      {"tie_word_embeddings", config.tied_embeddings},
                      {"initializer_range", as_written(config.initializer_range)},
                      {"torch_dtype", torch_name(dtype)},
                      {"use_cache", true}};
  return document.dump(2) + "\n";
}

void save_model(const fs::path& folder, const models::ModelSource& source, Executor& executor) {
  formats::DirectoryTransaction transaction(folder);
  write_model_files(transaction.staging(), source, executor);
  transaction.commit(formats::DirectoryTransaction::IfExists::replace);
}

void write_model_files(const fs::path& folder, const models::ModelSource& source,
                       Executor& executor) {
  executor.backend().synchronise();
  std::vector<SavedTensor> tensors;
  for (const models::Weight& weight : models::weights_of(source.config))
    tensors.push_back({weight.name, executor.tensor(weight.name)});
  require_finite(tensors);
  write_tensors(folder, kStem, tensors);
  const DType dtype = tensors.front().buffer.dtype;
  const bool is_preset = source.folder.empty();
  base::write_file_atomically(folder / "config.json",
                              is_preset ? config_json(source.config, dtype)
                                        : updated_config(source.folder / "config.json", dtype));
  if (!is_preset) formats::copy_companion_files(source.folder, folder);
  read_back(folder, kStem, tensors, executor);
}

}  // namespace snug::runtime
