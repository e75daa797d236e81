// What a PEFT adapter changes in the weights of a model: which of them get a product added, which
// are replaced, whole or in rows, and whether the head becomes a tensor of its own. Merging gives
// the model that applying gives (plan/spec/adapter_tables.h, methods/lora_files.cpp), and nothing
// of an adapter is passed over: what no weight of the base has is an error.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convert/source/weight_source.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/folder/tensor_index.h"

namespace snug::convert {

// scale * left * right, as the base stores the weight: B A, or (B A)^T of an embedding and of
// linears stored as (in, out). DoRA then gives each output its magnitude: a row of the weight, or a
// column of one stored as (in, out).
//
// Experts of a layer share A (experts * r, in), by expert, and B (out, r * experts), by rank and
// then by expert (methods/lora_experts.h). A tensor is one of the matrices of one expert, or those
// of all experts, (experts, out, in) or transposed.
struct LoraChange {
  const formats::IndexedTensor* a = nullptr;  // (r, in)
  const formats::IndexedTensor* b = nullptr;  // (out, r)
  const formats::IndexedTensor* magnitude = nullptr;
  bool is_transposed = false;
  bool is_embedding = false;
  int64_t r = 0;
  float scale = 1.0F;
  int64_t experts = 0;              // that share the factors; 0: they are a matrix's own
  std::optional<int64_t> expert{};  // whose matrix the tensor is; nothing: it holds all
  int64_t first_out = 0;            // the output that the matrix's first row is
};

struct WeightChange {
  const formats::IndexedTensor* whole = nullptr;  // the values that replace the base's
  const formats::IndexedTensor* rows = nullptr;   // rows that replace those of `tokens`
  std::vector<int64_t> tokens{};
  std::optional<LoraChange> lora{};

  bool is_empty() const { return whole == nullptr && rows == nullptr && !lora; }
};

class AdapterChanges {
 public:
  // Throws UserError for an adapter that cannot be merged, such as LLaMA-Adapter's prompts; for one
  // that is not of this model, in whole or in part; and for what PEFT itself would refuse.
  AdapterChanges(const WeightSource& base, const std::filesystem::path& adapter);

  const formats::TensorIndex& files() const { return files_; }
  // nullptr where the adapter does not change this tensor of the base.
  const WeightChange* of(const SourceTensor& tensor) const;

  // The head of a model whose head was its embedding, where it no longer is.
  struct OwnHead {
    const SourceTensor* embedding = nullptr;  // of the base, whose values it begins with
    std::string name;                         // in the folder's files
    std::string weight;                       // in the model; empty: the same
    WeightChange change;
  };
  const std::optional<OwnHead>& own_head() const { return own_head_; }
  // The model with the adapter; nothing where Snug does not know the base.
  const std::optional<models::ModelConfig>& model() const { return model_; }

 private:
  class Finder;
  formats::OtherParts others_;
  formats::PeftAdapter adapter_;
  formats::TensorIndex files_;
  std::optional<models::ModelConfig> model_;
  std::map<const SourceTensor*, WeightChange> changes_;
  std::optional<OwnHead> own_head_;
};

}  // namespace snug::convert
