#include "convert/folder/merge_folder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/console.h"
#include "base/error.h"
#include "base/json.h"
#include "convert/source/folder_weights.h"
#include "convert/source/merged_weights.h"
#include "formats/adapter/adapter_folder.h"
#include "formats/adapter/torch_name.h"
#include "formats/folder/hub_cache.h"
#include "models/config/config.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using formats::Recipe;

bool is_adapter(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / formats::kAdapterConfigName, error);
}

// The folder of the adapter, which may be within that of a run.
fs::path adapter_folder(const Recipe& recipe) {
  const fs::path given = recipe.adapter;
  std::error_code error;
  if (is_adapter(given) || !fs::is_directory(given, error)) return given;
  const fs::path within = formats::adapter_within(given);
  return within.empty() ? given : within;
}

// The model that the adapter's config says it was trained on.
fs::path trained_model(const Recipe& recipe, const fs::path& adapter, std::string_view model_key) {
  if (!is_adapter(adapter)) formats::refuse_adapter_folder(adapter);
  const fs::path path = adapter / formats::kAdapterConfigName;
  const nlohmann::json document = base::read_json_file(path);
  const std::string name =
      base::JsonObject(document, path.string()).text_or("base_model_name_or_path", "");
  if (name.empty())
    recipe.fail(model_key, fmt::format("is not given, and {} does not name the model that the "
                                       "adapter was trained on; give {}=FOLDER",
                                       path.string(), model_key));
  std::error_code error;
  if (fs::is_directory(name, error)) return name;
  const auto hub = formats::parse_hub_name(name);
  if (hub)
    if (auto cached = formats::find_in_hub_cache(*hub)) return std::move(*cached);
  recipe.fail(
      model_key,
      fmt::format("is not given, and the model that {} names, \"{}\", is neither a folder "
                  "nor in the cache of the Hugging Face hub; give {}=FOLDER{}",
                  path.string(), name, model_key,
                  hub ? fmt::format(", or fetch it with '{}'", hub->download_command()) : ""));
}

// The type to write, where the command line says one. That of a recipe's file is the type in which
// the run computed: with it, a model in bf16 would become one of twice the size.
std::optional<base::DType> asked_type(const Recipe& recipe) {
  const auto given = recipe.given.find("compute_dtype");
  if (given == recipe.given.end() || given->second.file != formats::kCommandLine)
    return std::nullopt;
  switch (recipe.compute_dtype) {
    case formats::ComputeDtype::automatic:
      return std::nullopt;
    case formats::ComputeDtype::bf16:
      return base::DType::bf16;
    case formats::ComputeDtype::fp16:
      return base::DType::f16;
    case formats::ComputeDtype::fp32:
      return base::DType::f32;
  }
  return std::nullopt;
}

}  // namespace

MergeInputs merge_inputs(const Recipe& recipe, std::string_view model_key) {
  recipe.require("adapter");
  MergeInputs inputs;
  inputs.adapter = adapter_folder(recipe);
  if (!recipe.model.empty() && models::preset(recipe.model))
    recipe.fail("model", fmt::format("\"{}\" is a built-in shape without weights; give a model "
                                     "folder",
                                     recipe.model));
  inputs.model = recipe.model.empty() ? trained_model(recipe, inputs.adapter, model_key)
                                      : models::find_model_folder(recipe.model);
  inputs.options.dtype = asked_type(recipe);
  inputs.options.max_shard_bytes = recipe.max_shard_size;
  inputs.options.companions = {inputs.adapter};
  inputs.nf4 = {.double_quant = recipe.double_quant,
                .head = recipe.load_head_in_4bit,
                .compute = recipe.compute_dtype == formats::ComputeDtype::fp32 ? base::DType::f32
                                                                               : base::DType::bf16};
  return inputs;
}

class FolderMerger::Impl {
 public:
  explicit Impl(const MergeInputs& inputs)
      : inputs_(inputs),
        stored_(inputs.model),
        quantised_(inputs.base == MergeBase::quantised_values
                       ? std::make_unique<const Nf4Values>(stored_, inputs.nf4)
                       : nullptr),
        merged_(quantised_ ? static_cast<const WeightSource&>(*quantised_) : stored_,
                inputs.adapter) {
    static_cast<FolderCosts&>(plan_) = folder_costs(merged_, inputs_.options);
    plan_.tensors = std::ssize(merged_.tensors());
    plan_.changed = merged_.changed();
  }

  const FolderMergePlan& plan() const { return plan_; }
  const WeightSource& weights() const { return merged_; }
  FolderReport write(const fs::path& output) const {
    say_other_type();
    return write_folder(merged_, inputs_.options, output);
  }

 private:
  void say_other_type() const {
    const base::DType own = written_type(merged_, {});
    const base::DType written = written_type(merged_, inputs_.options);
    if (written != own)
      base::say("the merged model is written in {}, as dtype (compute_dtype) says; {} is in {}",
                formats::torch_name(written), inputs_.model.string(), formats::torch_name(own));
  }

  MergeInputs inputs_;
  FolderWeights stored_;
  std::unique_ptr<const Nf4Values> quantised_;
  MergedWeights merged_;
  FolderMergePlan plan_;
};

FolderMerger::FolderMerger(const MergeInputs& inputs)
    : impl_(std::make_unique<const Impl>(inputs)) {}
FolderMerger::~FolderMerger() = default;

const FolderMergePlan& FolderMerger::plan() const { return impl_->plan(); }
const WeightSource& FolderMerger::weights() const { return impl_->weights(); }
FolderReport FolderMerger::write(const fs::path& output) const { return impl_->write(output); }

FolderReport merge_folder(const Recipe& recipe, MergeBase base, const fs::path& output) {
  MergeInputs inputs = merge_inputs(recipe);
  inputs.base = base;
  return FolderMerger(inputs).write(output);
}

}  // namespace snug::convert
