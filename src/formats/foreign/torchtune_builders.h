// What torchtune's recipes say in ways of their own: the name of the model's builder says the
// method too, three keys together say which modules have an adapter, and no norm to clip to is no
// clipping.
#pragma once

#include <vector>

#include "formats/recipe/recipe_keys.h"

namespace snug::formats {

// With 0 for a clip_grad_norm without a value, `method` in place of model._component_, and
// `target_modules` in place of model.lora_attn_modules and of what model.apply_lora_to_mlp adds to
// it. Builders of others, and other keys, stay as they are.
std::vector<Written> without_builders(std::vector<Written> all);

}  // namespace snug::formats
