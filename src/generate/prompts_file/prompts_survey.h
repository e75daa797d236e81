// What is known of a prompts file before anything is answered: it is read once from front to back,
// so that the engine is planned for what is there, and mistakes are told before the work begins.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "formats/recipe/recipe.h"
#include "generate/prompts_file/prompt_lines.h"
#include "plan/job/assembly.h"
#include "text/record/bad_records.h"

namespace snug::generate {

struct PromptsSurvey {
  int64_t lines = 0;
  text::BadRecords bad{};        // lines that cannot be asked
  std::string checksum{};        // of what the lines say
  plan::InferenceShape shape{};  // that holds each of the others, `batch` of them side by side
};

// Throws UserError for a file without a prompt, and, as recipe.on_bad_record says, for one with
// lines that cannot be asked.
PromptsSurvey survey_prompts(const formats::Recipe& recipe, const models::ModelConfig& model,
                             PromptLines lines);

}  // namespace snug::generate
