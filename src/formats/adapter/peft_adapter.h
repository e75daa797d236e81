// A PEFT adapter folder: adapter_config.json and adapter_model.safetensors, with keys
//   base_model.model.MODULE.lora_A.weight   (r, in_features)
//   base_model.model.MODULE.lora_B.weight   (out_features, r)
//   base_model.model.MODULE.lora_magnitude_vector   (out_features), with use_dora
//   base_model.model.MODULE.lora_embedding_A   (r, vocab), of an embedding
//   base_model.model.MODULE.lora_embedding_B   (hidden, r)
//   base_model.model.MODULE.weight (and .bias)   of a module that trains whole (modules_to_save)
// where MODULE is the module's name in the base model, "model.layers.0.self_attn.q_proj". Wrappers
// may add parts to these names (adapter_names.h).
//
// PEFT also saves the tables of the embedding and the head if one of them has an adapter, if the
// vocabulary was resized, or if the user asked for it (save_embedding_layers):
//   base_model.model.MODULE.base_layer.weight  (vocab, hidden), of an adapted module
//   base_model.model.MODULE.weight             otherwise
// For single tokens (trainable_token_indices), it saves the rows of a table that are replaced:
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

// An adapted linear layer, or an adapted embedding, whose inputs are the entries of its vocabulary.
struct LoraModule {
  std::string module;  // "model.layers.0.self_attn.q_proj"
  int64_t in_features = 0;
  int64_t out_features = 0;
  bool is_embedding = false;
  int64_t r = 0;
  // The matrices of so many experts share the module: A is (experts * r, in_features), by expert,
  // and B (out_features, r * experts), by rank and then expert.
  int64_t experts = 1;
};

// The names in the file of an adapter's tensors: "base_model.model.MODULE.lora_A.weight".
std::string adapter_key(std::string_view tensor);
std::string lora_a_key(const LoraModule& module);
std::string lora_b_key(const LoraModule& module);
std::string lora_magnitude_key(std::string_view module);
// The name of the replaced rows of a model's weight.
std::string token_rows_key(std::string_view weight);

// Whether the name of the tensor's module ends in one of the names, as PEFT matches
// modules_to_save: "lm_head" for "lm_head.weight", "embed_tokens" for "model.embed_tokens.weight",
// "norm" for "model.layers.0.input_layernorm.weight".
bool is_of_module(std::string_view tensor, const std::vector<std::string>& names);

// Opens the file of an adapter folder, with PEFT's names for its tensors. Throws UserError where
// there is none, or where it is divided into shards.
SafetensorsFile open_adapter_file(const std::filesystem::path& folder);
// The same as a TensorIndex.
TensorIndex open_adapter_index(const std::filesystem::path& folder);
// The tensor of the file that holds a weight of the model; nullptr if none does.
const TensorInfo* find_table(const SafetensorsFile& file, std::string_view weight);
const IndexedTensor* find_table(const TensorIndex& index, std::string_view weight);
// For a table that is saved inside an adapted module: the weight of the model that it holds;
// nothing for other tensors.
std::optional<std::string> base_table(std::string_view key);

// The modules whose A the adapter's file holds, in the file's order and by the file's names (with
// wrappers), regardless of its config. Throws UserError where there is no such file, or where it
// holds no A.
std::vector<std::string> stored_modules(const std::filesystem::path& folder,
                                        OtherParts others = OtherParts::left_out);

// Threading: const after opening; tensors may be read in parallel.
class PeftAdapter {
 public:
  // Throws UserError for a broken config or file; a tensor that is neither LoRA's nor a whole
  // weight; an A without its B; a magnitude that the config does not announce, or a missing one;
  // rows of tokens that the config does not name; and shapes that disagree with r.
  explicit PeftAdapter(const std::filesystem::path& folder,
                       OtherParts others = OtherParts::left_out);

  const std::filesystem::path& folder() const { return folder_; }
  const LoraConfig& config() const { return config_; }
  // The modules in the order of the file.
  const std::vector<LoraModule>& modules() const { return modules_; }
  // The base model's names of the tensors that the file holds whole, whether or not modules_to_save
  // names them.
  const std::vector<std::string>& saved() const { return saved_; }
  const TensorInfo& saved_tensor(std::string_view name) const { return *find_table(*file_, name); }
  // Tensors that are ignored because they belong to a part that the models here do not have.
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
  OtherParts others_;
  LoraConfig config_;
  std::vector<LoraModule> modules_;
  std::vector<std::string> saved_;
  std::vector<std::string> left_out_;
  std::unique_ptr<SafetensorsFile> file_;
};

// The tensors of an adapter to declare, A before B for each module, all of one dtype; pass them to
// SafetensorsWriter(folder / kAdapterWeightsName, ...).
inline constexpr std::string_view kAdapterWeightsName = "adapter_model.safetensors";
std::vector<TensorSpec> adapter_tensors(const std::vector<LoraModule>& modules, int64_t r,
                                        base::DType dtype);

}  // namespace snug::formats
