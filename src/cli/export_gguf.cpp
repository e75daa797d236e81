// `snug export gguf`: a model, or an adapter, as files for llama.cpp and the programs built on it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/convert_folder.h"
#include "cli/verbs.h"
#include "convert/folder/model_card.h"
#include "convert/gguf/export_gguf.h"
#include "convert/source/folder_weights.h"
#include "formats/folder/hf_folder.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {
namespace {

constexpr const char* kDefaultTypes = "q8_0";

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

int export_model(const Request& request, const formats::Recipe& recipe, const std::string& types) {
  const std::string folder = folder_to_convert(recipe, "export gguf");
  const convert::FolderWeights source(folder);
  const convert::GgufExporter exporter(source, convert::parse_mixes(types),
                                       formats::HfFolder(folder).name());
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
                           convert::write_model_card(recipe.output_dir,
                                                     card_of(recipe, folder, types));
                           return report;
                         }});
}

}  // namespace

int export_gguf(const Request& request) {
  Request of_model = request;
  std::string types = kDefaultTypes;
  of_model.take_words([&](const std::string& key, const std::string& value) {
    if (key == "types") types = value;
    return key == "types";
  });
  return export_model(of_model, of_model.recipe(), types);
}

}  // namespace snug::cli
