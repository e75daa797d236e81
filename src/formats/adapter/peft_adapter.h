// A PEFT adapter folder: adapter_config.json and adapter_model.safetensors, with keys
//   base_model.model.MODULE.lora_A.weight   (r, in_features)
//   base_model.model.MODULE.lora_B.weight   (out_features, r)
//   base_model.model.MODULE.lora_magnitude_vector   (out_features), with use_dora
//   base_model.model.MODULE.lora_embedding_A   (r, vocab), of an embedding
//   base_model.model.MODULE.lora_embedding_B   (hidden, r)
//   base_model.model.MODULE.weight          of a module that trains whole (modules_to_save); .bias
// where MODULE is the module's name in the base model, "model.layers.0.self_attn.q_proj". Wrappers
// may add parts to these names (adapter_names.h).
//
// PEFT saves tables of the embedding and the head next to these, where one has an adapter, where
// the vocabulary was resized, or when it is asked to (save_embedding_layers):
//   base_model.model.MODULE.base_layer.weight  (vocab, hidden), where there is an adapter on it
//   base_model.model.MODULE.weight             else
// and of tokens alone (trainable_token_indices) the rows of a table that are replaced:
//   base_model.model.MODULE.token_adapter.trainable_tokens_delta  (tokens, hidden)
#pragma once

#include "formats/adapter/lora_config.h"
#include "formats/folder/safetensors_file.h"
#include "formats/folder/safetensors_writer.h"
#include "formats/folder/tensor_index.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
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
  int64_t r = 0;
};

// What a file calls a tensor of an adapter: "base_model.model.MODULE.lora_A.weight".
std::string adapter_key(std::string_view tensor);
std::string lora_a_key(const LoraModule& module);
std::string lora_b_key(const LoraModule& module);
std::string lora_magnitude_key(std::string_view module);
// Of the rows of a weight of the model that are replaced.
std::string token_rows_key(std::string_view weight);

// Whether the name of the tensor's module ends in one of the names, as PEFT compares
// modules_to_save: "lm_head" of "lm_head.weight", "embed_tokens" of "model.embed_tokens.weight",
// "norm" of "model.layers.0.input_layernorm.weight".
bool is_of_module(std::string_view tensor, const std::vector<std::string>& names);

// The file of an adapter folder, with PEFT's names. Throws UserError where there is none, or it is
// in shards.
SafetensorsFile open_adapter_file(const std::filesystem::path& folder);
// The same as an index.
TensorIndex open_adapter_index(const std::filesystem::path& folder);
// The tensor of the file that holds a weight of the model; nullptr: none does.
const TensorInfo* find_table(const SafetensorsFile& file, std::string_view weight);
const IndexedTensor* find_table(const TensorIndex& index, std::string_view weight);
// The weight of the model that such a tensor holds next to an adapter on it; nothing for others.
std::optional<std::string> base_table(std::string_view key);

// The modules whose A an adapter folder's file holds, in its order, by the names that it has (with
// what wrappers add), without a look at its config. Throws UserError where there is no such file,
// or none in it.
std::vector<std::string> stored_modules(const std::filesystem::path& folder);

// Threading: const after opening, reads may run in parallel.
class PeftAdapter {
 public:
  // Throws UserError for a broken config or file, a tensor that is neither LoRA's nor a weight that
  // is held whole, an A without its B, a magnitude where the config says there is none or none
  // where it says there is one, rows of tokens that the config does not name, or shapes that
  // disagree with r.
  explicit PeftAdapter(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const LoraConfig& config() const { return config_; }
  // The modules in the order of the file.
  const std::vector<LoraModule>& modules() const { return modules_; }
  // The base model's names of tensors that are held whole, be they named in modules_to_save or not.
  const std::vector<std::string>& saved() const { return saved_; }
  const TensorInfo& saved_tensor(std::string_view name) const { return *find_table(*file_, name); }
  // Tensors of a part that the models here do not have, which are left out.
  const std::vector<std::string>& left_out() const { return left_out_; }
  const SafetensorsFile& file() const { return *file_; }
  const TensorInfo& lora_a(const LoraModule& module) const;  // (r, in_features)
  const TensorInfo& lora_b(const LoraModule& module) const;  // (out_features, r)

 private:
  void add(const TensorInfo& tensor);
  void add_module(const std::string& module, const TensorInfo& a);
  bool add_partner(const TensorInfo& tensor) const;
  bool add_saved(const TensorInfo& tensor);
  bool is_copy(const TensorInfo& tensor) const;

  std::filesystem::path folder_;
  LoraConfig config_;
  std::vector<LoraModule> modules_;
  std::vector<std::string> saved_;
  std::vector<std::string> left_out_;
  std::unique_ptr<SafetensorsFile> file_;
};

// Declares the tensors of an adapter, A before B for each module, all of one dtype: hand them to
// SafetensorsWriter(folder / kAdapterWeightsName, ...).
inline constexpr std::string_view kAdapterWeightsName = "adapter_model.safetensors";
std::vector<TensorSpec> adapter_tensors(const std::vector<LoraModule>& modules, int64_t r,
                                        base::DType dtype);

}  // namespace snug::formats
