// `snug generate`: continues a prompt, or each prompt of a file.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::generate {

// Continues recipe.prompt (in the form that prompt_format names) or recipe.ids until a stop id, a
// text of recipe.stop or max_new_tokens, and prints the continuation to standard output as it
// grows. With `json`, prints one object instead: text (null without a tokenizer), ids (of the new
// tokens, a stop id included), finish_reason ("stop" or "length"), prompt_tokens, new_tokens,
// tokens_per_second (new tokens over the whole time, prompt included), prefill_seconds,
// decode_seconds, device.peak_bytes. With recipe.prompts see prompts_file/prompts_file.h. Returns
// 0. Throws UserError; with exit code 3 when the job does not fit the budget.
int generate(const formats::Recipe& recipe, bool json);

}  // namespace snug::generate
