#include "plan/choice/change.h"

#include <fmt/format.h>

#include "base/error.h"
#include "formats/recipe/recipe.h"
#include "formats/recipe/recipe_keys.h"

namespace snug::plan {

std::string to_string(const Overrides& overrides) {
  std::string text;
  for (const auto& [key, value] : overrides)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

formats::Recipe with_overrides(formats::Recipe recipe, const Overrides& overrides) {
  for (const auto& [name, value] : overrides) {
    const formats::RecipeKey* key = formats::find_recipe_key(name);
    SNUG_CHECK(key != nullptr && key->field.set != nullptr, "no key {}", name);
    const base::Location where{std::string(formats::kCommandLine), 0, 0};
    key->field.set(recipe, formats::parse_value(*key, {name, {value}, false, where}));
    recipe.given.insert_or_assign(std::string(key->name), where);
  }
  formats::settle_method(recipe);
  return recipe;
}

std::vector<int64_t> micro_batches(int64_t rows) {
  std::vector<int64_t> sizes;
  for (int64_t size = rows; size >= 1; --size)
    if (rows % size == 0) sizes.push_back(size);
  return sizes;
}

}  // namespace snug::plan
