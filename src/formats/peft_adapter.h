// A PEFT adapter folder: adapter_config.json and adapter_model.safetensors, with keys
//   base_model.model.MODULE.lora_A.weight   (r, in_features)
//   base_model.model.MODULE.lora_B.weight   (out_features, r)
//   base_model.model.MODULE.lora_magnitude_vector   (out_features), with use_dora
//   base_model.model.MODULE.lora_embedding_A   (r, vocab), of an embedding
//   base_model.model.MODULE.lora_embedding_B   (hidden, r)
//   base_model.model.MODULE.base_layer.weight  (vocab, hidden), the base model's own table, which
//                                              PEFT saves next to them unless it is told not to
//   base_model.model.MODULE.weight          of a module that trains whole (modules_to_save); .bias
// where MODULE is the module's name in the base model, "model.layers.0.self_attn.q_proj".
#pragma once

#include "formats/lora_config.h"
#include "formats/safetensors_file.h"
#include "formats/safetensors_writer.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

// One adapted linear layer, or an embedding, whose inputs are the entries of its vocabulary.
struct LoraModule {
  std::string module;  // "model.layers.0.self_attn.q_proj"
  int64_t in_features = 0;
  int64_t out_features = 0;
  bool is_embedding = false;
};

// What a file calls a tensor of an adapter: "base_model.model.MODULE.lora_A.weight".
std::string adapter_key(std::string_view tensor);
std::string lora_a_key(const LoraModule& module);
std::string lora_b_key(const LoraModule& module);
std::string lora_magnitude_key(std::string_view module);

// Whether the name of the tensor's module ends in one of the names, as PEFT compares
// modules_to_save: "lm_head" of "lm_head.weight", "embed_tokens" of "model.embed_tokens.weight",
// "norm" of "model.layers.0.input_layernorm.weight".
bool is_of_module(std::string_view tensor, const std::vector<std::string>& names);

// The file of an adapter folder. Throws UserError where there is none, or it is in shards.
SafetensorsFile open_adapter_file(const std::filesystem::path& folder);

// The modules whose A an adapter folder's file holds, in its order, without a look at its config.
// Throws UserError where there is no such file, or none in it.
std::vector<std::string> stored_modules(const std::filesystem::path& folder);

// Threading: const after opening, reads may run in parallel.
class PeftAdapter {
 public:
  // Throws UserError for a broken config or file, a tensor that is neither LoRA's nor of a module
  // that the config says is saved, an A without its B, a magnitude where the config says there is
  // none or none where it says there is one, or shapes that disagree with r.
  explicit PeftAdapter(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const LoraConfig& config() const { return config_; }
  // The modules in the order of the file.
  const std::vector<LoraModule>& modules() const { return modules_; }
  // The base model's names of tensors that are held whole.
  const std::vector<std::string>& saved() const { return saved_; }
  const SafetensorsFile& file() const { return *file_; }
  const TensorInfo& lora_a(const LoraModule& module) const;  // (r, in_features)
  const TensorInfo& lora_b(const LoraModule& module) const;  // (out_features, r)

 private:
  std::filesystem::path folder_;
  LoraConfig config_;
  std::vector<LoraModule> modules_;
  std::vector<std::string> saved_;
  std::unique_ptr<SafetensorsFile> file_;
};

// Declares the tensors of an adapter, A before B for each module, all of one dtype: hand them to
// SafetensorsWriter(folder / kAdapterWeightsName, ...).
inline constexpr std::string_view kAdapterWeightsName = "adapter_model.safetensors";
std::vector<TensorSpec> adapter_tensors(const std::vector<LoraModule>& modules, int64_t r,
                                        base::DType dtype);

}  // namespace snug::formats
