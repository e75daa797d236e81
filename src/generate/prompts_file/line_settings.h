// What a line of a prompts file says of its own request, under the names that users have from
// OpenAI's interface, from vLLM and from transformers: max_tokens, temperature, stop and others.
// They override the recipe's keys, by which they are read and checked.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "text/record/record_fields.h"

namespace snug::generate {

struct LineSettings {
  formats::Recipe recipe;  // with what the line says
  bool has_own_seed = false;
  bool wants_ids = false;           // return_token_ids
  bool ignores_ends = false;        // ignore_eos: no id ends the answer
  std::vector<int32_t> stop_ids{};  // stop_token_ids
  std::string adapter{};            // one of the recipe's adapters; empty: none
};

// Throws RecordError for a value that a setting cannot have, and for what is asked of a request
// that is not built: several answers (n), a form of the answer (response_format), and others; and
// for an adapter that is none of these.
LineSettings read_line_settings(const formats::Recipe& recipe, const text::RecordFields& fields,
                                std::span<const std::string> adapters = {});

// Throws RecordError where a request of OpenAI's batch form has a field that nothing has used and
// that may change the answer.
void refuse_unknown_settings(const text::RecordFields& fields);

}  // namespace snug::generate
