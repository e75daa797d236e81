// The names of LLaMA-Factory's and ms-swift's templates. A model that has a chat template of its
// own has the one that these names stand for.
#pragma once

#include <string>
#include <string_view>

namespace snug::formats {

// The recipe's chat_template: the model's own, and for a name that Snug has a template for that one
// where the model has none. Throws UserError for names that stand for no model's template.
std::string chat_template_for(std::string_view name);

}  // namespace snug::formats
