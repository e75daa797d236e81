// `snug import gguf`: makes a Hugging Face folder of a GGUF file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/lower_case.h"
#include "cli/convert_folder.h"
#include "cli/verbs.h"
#include "convert/gguf/import_gguf.h"
#include "formats/recipe/recipe.h"
#include "formats/recipe/recipe_keys.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

std::optional<base::DType> dtype_of(formats::ComputeDtype dtype) {
  switch (dtype) {
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

// The names of the .gguf files in a folder, in order. Throws UserError where it cannot be read.
std::vector<std::string> gguf_files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : base::list_folder(folder)) {
    const std::string name = entry.path().filename().string();
    if (base::lower_case(name).ends_with(".gguf")) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// A folder is what most programs take as a model, and what a download makes.
[[noreturn]] void refuse_folder(const std::string& folder) {
  const std::vector<std::string> names = gguf_files_in(folder);
  if (names.empty())
    base::throw_user_error(
        "{} is a folder, and no .gguf file is in it; a Hugging Face folder is a model as it is: "
        "give it as model= to train, generate and the other commands",
        folder);
  base::throw_user_error("{} is a folder; give the file in it, as in file={}. It has {}", folder,
                         (fs::path(folder) / names.front()).string(), fmt::join(names, ", "));
}

// Takes file=, model= (as other commands have it) or the file's name alone out of the request.
std::string take_file(Request& request) {
  std::optional<std::string> file;
  request.take_words([&](const std::string& key, const std::string& value) {
    const formats::RecipeKey* known = formats::find_recipe_key(key);
    if (key != "file" && (known == nullptr || known->name != "model")) return false;
    if (file) base::throw_user_error("file= and model= both name the file to import; give one");
    file = value;
    return true;
  });
  if (file && base::lower_case(request.recipe_file).ends_with(".gguf"))
    base::throw_user_error("file= and {} both name the file to import; give one",
                           request.recipe_file);
  if (!file) file = std::exchange(request.recipe_file, "");
  if (file->empty())
    base::throw_user_error("snug import gguf needs file=FILE, the .gguf file to import");
  std::error_code error;
  if (fs::is_directory(*file, error)) refuse_folder(*file);
  return *file;
}

}  // namespace

int import_gguf(const Request& request) {
  Request of_import = request;
  const std::string file = take_file(of_import);
  const formats::Recipe recipe = of_import.recipe();
  require_output_dir(recipe, "import gguf");
  const convert::GgufImporter importer(file, dtype_of(recipe.compute_dtype), recipe.max_shard_size);
  const convert::GgufImportPlan& plan = importer.plan();
  if (const std::string note = importer.note(); !note.empty()) base::say_line(note);
  return convert_folder(of_import, recipe,
                        {.summary = fmt::format("{} tensors, from {} to {}", plan.tensors,
                                                plan.main_type, base::name_of(plan.dtype)),
                         .json = {{"file", file},
                                  {"tensors", plan.tensors},
                                  {"quantised_tensors", plan.quantised_tensors},
                                  {"from", plan.main_type},
                                  {"to", base::name_of(plan.dtype)}},
                         .source = file,
                         .costs = plan,
                         .write = [&] { return importer.write(recipe.output_dir); }});
}

}  // namespace snug::cli
