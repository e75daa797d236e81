// `snug import gguf`: makes a Hugging Face folder of a GGUF file.
#include <fmt/format.h>

#include <string>

#include "base/console.h"
#include "base/error.h"
#include "cli/convert_folder.h"
#include "cli/verbs.h"
#include "convert/gguf/import_gguf.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {
namespace {

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

// Takes file=, or the file's name alone, out of the request.
std::string take_file(Request& request) {
  std::string file;
  request.take_words([&](const std::string& key, const std::string& value) {
    if (key != "file") return false;
    file = value;
    return true;
  });
  if (file.empty() && request.recipe_file.ends_with(".gguf")) file.swap(request.recipe_file);
  if (file.empty())
    base::throw_user_error("snug import gguf needs file=FILE, the .gguf file to import");
  return file;
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
