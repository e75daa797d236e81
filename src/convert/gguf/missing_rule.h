// Which rule divides texts into words for a byte-level tokenizer whose GGUF file does not say it,
// as files made before May 2024 do not. Pure functions, any thread.
#pragma once

#include <string>

#include "convert/gguf/gguf_tokenizer.h"

namespace snug::convert {

// Whether the tokenizer needs a rule, and the file names none ("default" is what converters wrote
// for those that they did not know).
bool lacks_rule(const GgufTokenizer& tokenizer);

// The name of the rule with which a fixed text has the ids that are known for the published
// tokenizer of this rule, so that it is the one that the model was trained with. Empty where no
// rule gives known ids: the vocabulary is not a published one.
std::string rule_by_ids(GgufTokenizer tokenizer);

}  // namespace snug::convert
