// `snug export gguf`: a model, or an adapter, as files for llama.cpp and the programs built on it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/convert_folder.h"
#include "cli/verbs.h"
#include "convert/folder/merge_folder.h"
#include "convert/folder/model_card.h"
#include "convert/gguf/export_adapter.h"
#include "convert/gguf/export_gguf.h"
#include "convert/gguf/merged_tokenizer.h"
#include "convert/source/folder_weights.h"
#include "convert/source/merged_weights.h"
#include "formats/folder/hf_folder.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultTypes = "q8_0";
constexpr const char* kDefaultAdapterTypes = "f32";

// Runs keep theirs in a folder "adapter", which says less than the run's name.
std::string name_of_adapter(const fs::path& adapter) {
  const fs::path folder = fs::absolute(adapter).lexically_normal();
  const fs::path last = folder.has_filename() ? folder : folder.parent_path();
  return (last.filename() == "adapter" ? last.parent_path() : last).filename().string();
}

// README.md of the folder with the files.
convert::CardInputs card_of(const formats::Recipe& recipe, const std::string& folder,
                            const std::string& types) {
  convert::CardInputs card{.kind = convert::CardKind::exported,
                           .title = convert::title_of_folder(recipe.output_dir),
                           .model = folder,
                           .model_name = recipe.model};
  for (const convert::GgufMix mix : convert::parse_mixes(types))
    card.types.emplace_back(base::word_of(mix));
  for (const auto& entry : base::list_folder(recipe.output_dir)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".gguf") || name == "Modelfile") card.files.push_back(name);
  }
  std::ranges::sort(card.files);
  return card;
}

// The adapter merged into the model, where there is one.
struct ExportSource {
  convert::FolderWeights model;
  std::optional<convert::MergedWeights> merged{};

  const convert::WeightSource& weights() const {
    if (merged) return *merged;
    return model;
  }
};

int export_model(const Request& request, const formats::Recipe& recipe, const std::string& types) {
  const std::string folder = folder_to_convert(recipe, "export gguf");
  ExportSource source{.model = convert::FolderWeights(folder)};
  std::string name = formats::HfFolder(folder).name();
  fs::path adapter;
  if (!recipe.adapter.empty()) {
    adapter = convert::merge_inputs(recipe).adapter;
    source.merged.emplace(source.model, adapter);
    name = fmt::format("{}-{}", name, name_of_adapter(adapter));
  }
  std::optional<convert::MergedTokenizer> tokenizer;
  if (!adapter.empty()) tokenizer.emplace(folder, adapter, recipe.output_dir);
  const convert::GgufExporter exporter(source.weights(), convert::parse_mixes(types), name,
                                       tokenizer ? tokenizer->folder() : fs::path(folder));
  const convert::GgufExportPlan& plan = exporter.plan();
  for (const std::string& difference : plan.differences)
    base::say("{}: {}", recipe.model, difference);
  return convert_folder(request, recipe,
                        {.summary = fmt::format("{} tensors of {} as {}", plan.tensors,
                                                plan.architecture, fmt::join(plan.files, ", ")),
                         .json = {{"architecture", plan.architecture},
                                  {"tensors", plan.tensors},
                                  {"files", plan.files},
                                  {"differences", plan.differences}},
                         .costs = plan,
                         .write = [&] {
                           const convert::FolderReport report = exporter.write(recipe.output_dir);
                           convert::CardInputs card = card_of(recipe, folder, types);
                           card.adapter = adapter;
                           convert::write_model_card(recipe.output_dir, card);
                           return report;
                         }});
}

int export_adapter(const Request& request, formats::Recipe recipe, const std::string& types) {
  require_output_dir(recipe, "export gguf");
  recipe.model = recipe.base;
  const convert::MergeInputs inputs = convert::merge_inputs(recipe, "base");
  const convert::FolderWeights base(inputs.model);
  const convert::MergedTokenizer tokenizer(inputs.model, inputs.adapter, recipe.output_dir);
  const convert::AdapterExporter exporter(base, inputs.adapter, convert::parse_mixes(types),
                                          name_of_adapter(inputs.adapter), tokenizer.folder());
  const convert::AdapterExportPlan& plan = exporter.plan();
  for (const std::string& note : plan.notes) base::say("{}: {}", recipe.adapter, note);
  return convert_folder(
      request, recipe,
      {.summary = fmt::format("adapters of {} matrices of {} as {}, for llama.cpp's --lora",
                              plan.matrices, plan.architecture, fmt::join(plan.files, ", ")),
       .json = {{"architecture", plan.architecture},
                {"matrices", plan.matrices},
                {"alpha", plan.alpha},
                {"files", plan.files},
                {"notes", plan.notes}},
       .source = inputs.adapter.string(),
       .costs = plan,
       .write = [&] { return exporter.write(recipe.output_dir); }});
}

}  // namespace

int export_gguf(const Request& request) {
  Request of_model = request;
  std::optional<std::string> given_types;
  of_model.take_words([&](const std::string& key, const std::string& value) {
    if (key == "types") given_types = value;
    return key == "types";
  });
  const formats::Recipe recipe = of_model.recipe();
  const bool is_adapter = recipe.model.empty() && !recipe.adapter.empty();
  if (!is_adapter && !recipe.base.empty())
    recipe.fail("base",
                "is for an adapter alone: the model that it was trained on. Give model=DIR "
                "to merge the adapter into it");
  const std::string types = given_types.value_or(is_adapter ? kDefaultAdapterTypes : kDefaultTypes);
  return is_adapter ? export_adapter(of_model, recipe, types)
                    : export_model(of_model, recipe, types);
}

}  // namespace snug::cli
