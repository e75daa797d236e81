// The names of LLaMA-Factory's and ms-swift's templates, of which most are those of a model.
#pragma once

#include <string_view>

namespace snug::formats {

// Whether a name is that of a model's template which Snug has none of its own for: the model's
// folder has it. Other names are for chat_template to judge.
bool is_template_of_model(std::string_view name);

}  // namespace snug::formats
