#include "plan/spec/frozen_weights.h"

#include <fmt/format.h>

#include <set>

#include "models/stored/weight_patterns.h"
#include "models/weights.h"

namespace snug::plan {
namespace {

std::set<std::string> selected(const formats::Recipe& recipe, const char* key,
                               const std::vector<std::string>& patterns,
                               const models::ModelConfig& model) {
  std::set<std::string> names;
  for (const std::string& pattern : patterns) {
    const std::vector<std::string> found = models::weights_matching(model, pattern);
    if (found.empty())
      recipe.fail(key,
                  fmt::format("names \"{}\", which matches no tensor or module of this model; {}",
                              pattern, models::known_names(model, pattern)));
    names.insert(found.begin(), found.end());
  }
  return names;
}

}  // namespace

std::vector<std::string> frozen_weights(const formats::Recipe& recipe,
                                        const models::ModelConfig& model) {
  const bool all_train = recipe.trainable_modules.empty();
  const std::set<std::string> trained =
      selected(recipe, "trainable_modules", recipe.trainable_modules, model);
  const std::set<std::string> left_out =
      selected(recipe, "freeze_modules", recipe.freeze_modules, model);
  const std::vector<models::Weight> weights = models::weights_of(model);
  std::vector<std::string> frozen;
  for (const models::Weight& weight : weights)
    if (weight.is_constant || left_out.contains(weight.name) ||
        (!all_train && !trained.contains(weight.name)))
      frozen.push_back(weight.name);
  if (frozen.size() == weights.size() && recipe.freeze_modules.empty())
    recipe.fail("trainable_modules",
                "names only tensors that no training changes, and nothing is left to train; name "
                "other modules");
  if (frozen.size() == weights.size())
    recipe.fail("freeze_modules",
                all_train ? "freezes every weight of the model, and nothing is left to train; name "
                            "fewer modules"
                          : "freezes all that trainable_modules names, and nothing is left to "
                            "train; name fewer modules");
  return frozen;
}

}  // namespace snug::plan
