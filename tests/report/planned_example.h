// A planned job for the tests of pages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "models/families/families.h"
#include "null_target.h"
#include "plan/job/assembly.h"
#include "plan/spec/resolve.h"

namespace snug::report {

// Plans refer to what they are made of.
struct Example {
  explicit Example(const std::vector<std::string>& words)
      : recipe(plan::resolve(formats::load_recipe("", words),
                             models::find_model(formats::load_recipe("", words).model).config)),
        model(models::find_model(recipe.model)),
        planned(plan::assemble_training({recipe, model, target})) {}

  plan::NullTarget target{int64_t{2} << 30};
  formats::Recipe recipe;
  models::ModelSource model;
  plan::PlannedTraining planned;
};

}  // namespace snug::report
