// What a recipe evaluates on, without what it trains on: for what is measured after a run.
#pragma once

#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "text/row/dataset.h"

namespace snug::train {

// The documents of recipe.eval_data, of all its sets in their order; where there is none, those of
// the records of recipe.data that val_set_size holds out, which are the same as in the run. Where
// the recipe leaves max_length open, they are as long as the model reads. Requires a recipe that
// evaluates. Throws UserError as train::load_data does.
text::Dataset evaluation_documents(const formats::Recipe& recipe, const models::ModelSource& model);

}  // namespace snug::train
