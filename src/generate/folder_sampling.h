// How a model's folder says that its answers are drawn: the settings of sampling in its
// generation_config.json, which count where the user gives none.
#pragma once

#include <filesystem>
#include <optional>

#include "engine/sampling.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"

namespace snug::generate {

// What transformers' generate would take from this generation_config.json: do_sample, temperature,
// top_k, top_p, min_p and repetition_penalty. Without do_sample: true the likeliest token is taken;
// with it a temperature that is not there is 1, and a top_k 50. Nothing where the file does not
// exist or has none of these keys. Throws UserError, which names the file and the key, for a value
// that means nothing.
std::optional<engine::SamplingOptions> sampling_of_file(const std::filesystem::path& path);

// The recipe with the folder's settings where it gives no key of sampling (temperature, top_k,
// top_p, min_p, a penalty), and says in a line which they are. Those of an adapter's folder come
// first. Throws as sampling_of_file.
formats::Recipe with_folder_sampling(formats::Recipe recipe, const models::ModelSource& model);

}  // namespace snug::generate
