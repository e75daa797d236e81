#include "cli/run_card.h"

#include <exception>
#include <filesystem>

#include "base/console.h"
#include "convert/folder/model_card.h"
#include "formats/recipe/method_keys.h"
#include "models/config/config.h"
#include "train/run_folder.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using train::RunFolder;

void write_card_of_result(const formats::Recipe& recipe, const fs::path& result, bool is_model) {
  const models::ModelSource model = models::find_model(recipe.model);
  convert::CardInputs card{
      .kind = is_model ? convert::CardKind::trained : convert::CardKind::adapter,
      .title = convert::title_of_folder(recipe.output_dir),
      .model = model.folder,
      .model_name = recipe.model,
      .run = recipe.output_dir};
  if (!is_model) card.adapter = result;
  card.has_encoder = model.config.has_encoder();
  convert::write_model_card(result, card);
}

}  // namespace

void write_run_card(const formats::Recipe& recipe) {
  const bool is_model = formats::method_keys_of(recipe.method).trains_weights;
  const fs::path result =
      fs::path(recipe.output_dir) / (is_model ? RunFolder::kModel : RunFolder::kAdapter);
  try {
    write_card_of_result(recipe, result, is_model);
  } catch (const std::exception& error) {
    base::say("no model card is written to {}, and nothing else is missing: {}", result.string(),
              error.what());
  }
}

}  // namespace snug::cli
