// What identifies a job of a prompts file, so that its answers go on as they began.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "formats/recipe/recipe.h"
#include "generate/prompts_file/prompts_survey.h"
#include "models/config/config.h"

namespace snug::generate {

// The checksum of the prompts, and of a chat template and a JSON schema that are files; names,
// sizes and times of the files of model and adapter; and the recipe's keys, without those that
// change no answer.
nlohmann::json answer_job(const formats::Recipe& recipe, const models::ModelSource& model,
                          const PromptsSurvey& survey);

}  // namespace snug::generate
