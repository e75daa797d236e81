#include "cli/merge_job.h"

#include <fmt/format.h>

#include <array>
#include <system_error>

#include "base/console.h"
#include "base/error.h"
#include "cli/input_paths.h"
#include "formats/folder/run_mark.h"
#include "formats/recipe/recipe_keys.h"
#include "models/config/config.h"
#include "train/run_folder.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using formats::MergeInto;
using formats::Recipe;

constexpr std::array<std::string_view, 3> kTextPaths{"data", "eval_data", "chat_template"};

// The recipe of the run in whose folder the adapter lies.
std::optional<Recipe> recipe_of_run(const fs::path& adapter) {
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(adapter, error).parent_path();
  const fs::path file = folder / train::RunFolder::kRecipe;
  if (error || !fs::exists(folder / formats::kRunMark, error) || !fs::exists(file, error))
    return std::nullopt;
  try {
    Recipe run = formats::load_recipe(file.string(), {});
    find_inputs(run, kTextPaths, kTextPaths);
    return run;
  } catch (const base::UserError& failure) {
    base::say("the run of the adapter is not known, since its recipe is not read: {}",
              failure.what());
    return std::nullopt;
  }
}

// How the linears of the base were stored in training.
struct Storage {
  bool in_4_bits = false;
  bool double_quant = true;
  bool head = false;
  bool experts = false;
};

Storage storage_of(const MergeJob& job, const models::ModelConfig& model) {
  const Recipe& recipe = job.recipe;
  if (model.stored)
    return {.in_4_bits = true,
            .double_quant = model.stored->double_quant,
            .head = !model.stored->head.empty()};
  const bool is_said = recipe.is_given("load_in_4bit") || !job.run;
  const Recipe& source = is_said ? recipe : *job.run;
  // What is not said of the storage is as the run had it.
  const auto of = [&](const char* key) -> const Recipe& {
    return recipe.is_given(key) || !job.run ? recipe : *job.run;
  };
  return {.in_4_bits = source.load_in_4bit,
          .double_quant = of("double_quant").double_quant,
          .head = of("load_head_in_4bit").load_head_in_4bit,
          .experts = of("load_experts_in_4bit").load_experts_in_4bit};
}

Recipe trained_recipe(const MergeJob& job, const Storage& storage) {
  Recipe trained = job.recipe;
  trained.model = job.inputs.model.string();
  trained.adapter = job.inputs.adapter.string();
  trained.init = formats::Init::files;
  trained.method = formats::Method::lora;
  trained.load_in_4bit = storage.in_4_bits;
  trained.double_quant = storage.double_quant;
  trained.load_head_in_4bit = storage.head;
  trained.load_experts_in_4bit = storage.experts;
  const bool is_asked = job.recipe.drift_dtype != formats::ComputeDtype::automatic;
  trained.compute_dtype = is_asked ? job.recipe.drift_dtype : job.dtype_of_training();
  for (const char* key :
       {"method", "load_in_4bit", "double_quant", "load_head_in_4bit", "load_experts_in_4bit"})
    trained.given.erase(key);
  return trained;
}

std::optional<fs::path> folder_in_16_bits(const Recipe& recipe, const fs::path& model,
                                          bool is_stored_in_4_bits) {
  if (!is_stored_in_4_bits) {
    if (recipe.base.empty()) return model;
    recipe.fail("base", fmt::format("is the folder in 16 bits of a model in 4 bits, and {} is in "
                                    "16 bits itself; leave it out",
                                    model.string()));
  }
  if (recipe.base.empty()) return std::nullopt;
  if (models::preset(recipe.base))
    recipe.fail("base", fmt::format("\"{}\" is a built-in shape without weights; give a model "
                                    "folder",
                                    recipe.base));
  const models::ModelSource base = models::find_model(recipe.base);
  if (base.config.stored)
    recipe.fail("base", fmt::format("{} is in 4 bits, too; give the folder in 16 bits",
                                    base.folder.string()));
  return base.folder;
}

void refuse_keys_of_4_bits(const Recipe& recipe) {
  constexpr const char* kRemedy =
      "load_in_4bit=true says that it was (for an adapter that is not in its run's folder)";
  if (recipe.merge_into == MergeInto::quantised_values)
    recipe.fail("merge_into",
                fmt::format("is nf4, but the model was not trained in 4 bits; {}", kRemedy));
  if (!recipe.base.empty())
    recipe.fail("base", fmt::format("is for a model that was trained in 4 bits, and this one was "
                                    "not; leave it out. {}",
                                    kRemedy));
}

void add_variants(MergeJob& job, const models::ModelSource& model, const Storage& storage) {
  const Recipe& recipe = job.recipe;
  if (!storage.in_4_bits) {
    refuse_keys_of_4_bits(recipe);
    job.variants = {{MergedInto::model, model.folder}};
    return;
  }
  const bool is_stored = model.config.stored.has_value();
  const auto folder = folder_in_16_bits(recipe, model.folder, is_stored);
  if (!folder && recipe.merge_into == MergeInto::sixteen_bit)
    recipe.fail("merge_into", fmt::format("is 16bit, but {} is in 4 bits; give base=FOLDER, the "
                                          "model in 16 bits that it was made of",
                                          model.folder.string()));
  // The values of experts' codes are not made into a folder, and those of the other linears alone
  // are no model that was trained on.
  if (storage.experts && folder) {
    if (recipe.merge_into == MergeInto::quantised_values)
      recipe.fail("merge_into",
                  "is nf4, and the experts were trained in 4 bits too "
                  "(load_experts_in_4bit), whose values are not merged into; leave "
                  "it out: the merge into the model in 16 bits says how far it is");
    job.variants = {{MergedInto::sixteen_bit, *folder}};
    job.single_because =
        "it is merged into the model in 16 bits, since the values of experts in 4 bits, on which "
        "it was trained too, are not made into a folder";
    return;
  }
  if (folder && recipe.merge_into != MergeInto::quantised_values)
    job.variants.push_back({MergedInto::sixteen_bit, *folder});
  if (recipe.merge_into != MergeInto::sixteen_bit)
    job.variants.push_back({MergedInto::nf4, model.folder, !is_stored});
  if (!folder && recipe.merge_into == MergeInto::automatic)
    job.single_because =
        "it is merged into the values of NF4, on which it was trained; with base=FOLDER, the model "
        "in 16 bits, a merge into that is compared with it";
}

// A model that Snug merges tensor by tensor and does not run: the text part of a multimodal one, or
// one of another family. What is wrong with its folder the merge says.
MergeJob without_running(MergeJob job, const base::UserError& why) {
  if (job.recipe.load_in_4bit || !job.recipe.base.empty() ||
      job.recipe.merge_into != MergeInto::automatic)
    throw base::UserError(why);
  const std::string message = why.what();
  job.does_not_run = message.substr(0, message.find("; "));
  job.trained = trained_recipe(job, {});
  job.variants = {{MergedInto::model, job.inputs.model}};
  return job;
}

MergeJob complete(MergeJob job) {
  models::ModelSource model;
  try {
    model = models::find_model(job.inputs.model.string());
  } catch (const base::UserError& error) {
    return without_running(std::move(job), error);
  }
  const Storage storage = storage_of(job, model.config);
  job.trained = trained_recipe(job, storage);
  add_variants(job, model, storage);
  return job;
}

}  // namespace

std::string_view description_of(MergedInto base) {
  switch (base) {
    case MergedInto::model:
      return "the model";
    case MergedInto::sixteen_bit:
      return "the model in 16 bits";
    case MergedInto::nf4:
      return "the values of NF4";
  }
  return "";
}

formats::ComputeDtype MergeJob::dtype_of_training() const {
  return run ? run->compute_dtype : recipe.compute_dtype;
}

fs::path MergeJob::output() const {
  const fs::path path = fs::path(recipe.output_dir).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

MergeJob merge_job(const Recipe& recipe) {
  MergeJob job{.recipe = recipe};
  job.inputs = convert::merge_inputs(recipe);
  job.run = recipe_of_run(job.inputs.adapter);
  return complete(std::move(job));
}

MergeJob merge_job_of_run(const Recipe& run) {
  MergeJob job{.recipe = run, .run = run};
  const fs::path folder = run.output_dir;
  job.recipe.output_dir = (folder / train::RunFolder::kMerged).string();
  job.recipe.adapter = (folder / train::RunFolder::kAdapter).string();
  job.recipe.compute_dtype = formats::ComputeDtype::automatic;  // the folder's type is the model's
  job.inputs = convert::merge_inputs(job.recipe);
  return complete(std::move(job));
}

std::vector<MergeVariant> merge_variants_of_run(const Recipe& run) {
  MergeJob job{.recipe = run, .run = run};
  job.inputs.model = models::find_model_folder(run.model);
  return complete(std::move(job)).variants;
}

}  // namespace snug::cli
