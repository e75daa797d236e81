// What `snug merge` and merge=true are to do: the model and its adapter, how the model was stored
// while the adapter was trained, and into what it is merged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "convert/folder/merge_folder.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {

// The values to which the adapter is added.
enum class MergedInto : uint8_t {
  model,        // those of a model that was trained in 16 or 32 bits
  sixteen_bit,  // the same of one that was trained in 4 bits
  nf4,          // what its NF4 stands for
};
constexpr auto words_of(MergedInto /*type*/) {
  return base::words<MergedInto>(
      {{MergedInto::model, "model"}, {MergedInto::sixteen_bit, "16bit"}, {MergedInto::nf4, "nf4"}});
}
// For people: "the values of NF4".
std::string_view description_of(MergedInto base);

struct MergeVariant {
  MergedInto base = MergedInto::model;
  std::filesystem::path model;  // a folder
  bool quantises = false;       // the folder is in 16 bits, and is quantised to NF4 first
};

struct MergeJob {
  formats::Recipe recipe;                // of the command
  std::optional<formats::Recipe> run{};  // of the run that made the adapter, where it is known
  convert::MergeInputs inputs{};         // model, adapter, and how a folder is written
  formats::Recipe trained{};             // for inference: the model as it was trained, and compared
  std::vector<MergeVariant> variants{};  // at least one
  std::string single_because{};          // why a model in 4 bits has one variant alone
  std::string does_not_run{};            // why Snug does not run the model; empty: it does

  std::filesystem::path output() const;
  formats::ComputeDtype dtype_of_training() const;
};

// Throws UserError for a model or an adapter that is not there, and where merge_into or base asks
// for what the model does not have. Reads no weights.
MergeJob merge_job(const formats::Recipe& recipe);

// The same for the adapter of a run that has just ended, in its folder.
MergeJob merge_job_of_run(const formats::Recipe& run);
// Into what the adapter of a run will be merged, before there is one.
std::vector<MergeVariant> merge_variants_of_run(const formats::Recipe& run);

}  // namespace snug::cli
