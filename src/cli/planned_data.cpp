#include "cli/planned_data.h"

#include <filesystem>

#include "base/console.h"
#include "runtime/process_memory.h"

namespace snug::cli {

std::optional<train::RunData> read_planned_data(const formats::Recipe& recipe,
                                                const models::ModelSource& model,
                                                plan::TrainingSpec& spec) {
  if (recipe.data.empty()) return std::nullopt;
  const auto without = [](const std::string& path, const char* reason) {
    base::say("planned without the tokens of data {}: {}", path, reason);
    return std::nullopt;
  };
  for (const std::string& path : {recipe.data, recipe.eval_data})
    if (!path.empty() && !std::filesystem::exists(path))
      return without(path, "the file is not there");
  if (!train::has_tokenizer_for(recipe, model))
    return without(recipe.data, "a built-in shape has no tokenizer");
  train::RunData data = train::load_data(recipe, model, spec.row_segments);
  data.shape()(spec);
  runtime::release_freed_memory();
  return data;
}

}  // namespace snug::cli
