#include "cli/merge_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "formats/data/data_files.h"
#include "formats/recipe/recipe_keys.h"
#include "runtime/loading/load_weights.h"
#include "train/evaluation_documents.h"

namespace snug::cli {
namespace {

using formats::DataEntry;
using formats::Recipe;

constexpr const char* kRemedy = "eval_data=FILE gives the text to measure it on";

// What the run says of its data, and what the command says in its place.
Recipe text_recipe(const MergeJob& job) {
  Recipe text = job.run ? *job.run : job.recipe;
  if (job.run && job.recipe.is_given("eval_data")) text.val_set_size = 0;
  for (const formats::RecipeKey& key : formats::recipe_keys()) {
    if (key.group != "Data" || !job.recipe.is_given(key.name)) continue;
    key.field.set(text, key.field.get(job.recipe));
    text.given[std::string(key.name)] = job.recipe.given.find(key.name)->second;
  }
  text.model = job.trained.model;
  text.adapter = job.trained.adapter;
  text.init = formats::Init::files;
  text.threads = job.recipe.threads;
  if (!job.run && !text.is_given("max_length")) text.max_length = 0;
  return text;
}

const std::vector<DataEntry>& read_entries(const Recipe& text) {
  return text.eval_data.empty() ? text.data : text.eval_data;
}

std::string paths_of(const std::vector<DataEntry>& entries) {
  std::vector<std::string> paths;
  paths.reserve(entries.size());
  for (const DataEntry& entry : entries) paths.push_back(entry.path);
  return fmt::format("{}", fmt::join(paths, ", "));
}

std::string source_of(const Recipe& text) {
  if (!text.eval_data.empty()) return paths_of(text.eval_data);
  return fmt::format("the records of {} that val_set_size={} holds out", paths_of(text.data),
                     text.val_set_size);
}

bool is_there(const DataEntry& entry) {
  return formats::is_data_there(entry.path) || formats::is_data_in_hub_cache(entry.path);
}

std::string why_none(const MergeJob& job, const Recipe& text) {
  if (!job.does_not_run.empty()) return "for it the model must run here: " + job.does_not_run;
  if (job.recipe.drift_tokens == 0) return "drift_tokens=0 asks for none";
  if (!text.evaluates())
    return fmt::format("{}; {}",
                       job.run ? "the run of the adapter had no evaluation data"
                               : "the adapter does not lie in the folder of its run, whose "
                                 "evaluation data would be taken",
                       kRemedy);
  const auto gone = std::ranges::find_if_not(read_entries(text), is_there);
  const bool is_of_run = job.run && !job.recipe.is_given("eval_data");
  if (is_of_run && gone != read_entries(text).end())
    return fmt::format("{}, the data of the adapter's run, is not there; {}", gone->path, kRemedy);
  return "";
}

}  // namespace

MergeText merge_text(const MergeJob& job) {
  const Recipe recipe = text_recipe(job);
  MergeText text{.source = {}, .documents = {}, .missing = why_none(job, recipe)};
  if (!text.missing.empty()) return text;
  text.source = source_of(recipe);
  const models::ModelSource model = runtime::open_model(job.trained);
  text.documents = generate::compared_documents(
      train::evaluation_documents(recipe, model).documents, job.recipe.drift_tokens, model.config);
  if (text.documents.empty())
    text.missing = fmt::format("{} has nothing to predict; {}", text.source, kRemedy);
  return text;
}

}  // namespace snug::cli
