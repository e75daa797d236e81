// Merges a PEFT adapter into its model: a complete folder in 16 or 32 bits, which needs no adapter.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "convert/folder/write_folder.h"
#include "convert/source/nf4_values.h"
#include "formats/recipe/recipe.h"

namespace snug::convert {

// What an adapter is merged into.
enum class MergeBase : uint8_t {
  as_stored,         // the values of the model's folder: in 16 or 32 bits, or what NF4 stands for
  quantised_values,  // what the linears of a folder in 16 bits are once quantised to NF4
};

struct MergeInputs {
  std::filesystem::path model;    // a folder
  std::filesystem::path adapter;  // a folder of PEFT's
  MergeBase base = MergeBase::as_stored;
  Nf4Options nf4{};  // of quantised_values
  WriteOptions options{};
};

// The folders that a recipe of `snug merge` names. The adapter may be in a run's folder or in a
// checkpoint; the model may be left out where the adapter's config names one that is there. dtype
// (compute_dtype) on the command line is the type that is written. Throws UserError where there is
// no model or adapter; `model_key` is the key that would give the model.
MergeInputs merge_inputs(const formats::Recipe& recipe, std::string_view model_key = "model");

struct FolderMergePlan : FolderCosts {
  int64_t tensors = 0;
  int64_t changed = 0;  // tensors that differ from the model's
};

class FolderMerger {
 public:
  // Reads config.json and the headers. Throws UserError for what FolderWeights and AdapterChanges
  // refuse.
  explicit FolderMerger(const MergeInputs& inputs);
  ~FolderMerger();

  const FolderMergePlan& plan() const;
  const WeightSource& weights() const;
  // Throws UserError as write_folder does.
  FolderReport write(const std::filesystem::path& output) const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

// All in one: merges the adapter of a recipe into its model.
FolderReport merge_folder(const formats::Recipe& recipe, MergeBase base,
                          const std::filesystem::path& output);

}  // namespace snug::convert
