#include "plan/spec/generation_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "methods/objective.h"
#include "plan/job/request_sizes.h"
#include "plan/spec/rollout_spec.h"

namespace snug::plan {

// Only keys of the command line are refused: files of other tools may list all of them.
void check_answer_keys(const formats::Recipe& recipe) {
  if (recipe.eval_generate > 0 || methods::objective_of(recipe.objective).makes_answers) return;
  for (const char* key : {"max_new_tokens", "batch", "eval_metrics"}) {
    const auto found = recipe.given.find(key);
    if (found != recipe.given.end() && found->second.file == formats::kCommandLine)
      recipe.fail(key,
                  "is about the answers of an evaluation, of which this run generates none; give "
                  "eval_generate, the number of records of each evaluation set that are asked, or "
                  "leave it out");
  }
}

namespace {

// Of answers that are learned from: whole rows of logits are needed, since tokens are drawn from
// all and their log-probabilities are kept. The prompts of evaluations are answered alike.
InferenceShape rollout_shape(const formats::Recipe& recipe, const TrainingSpec& spec,
                             const JobDocuments& documents) {
  const RolloutSizes& rollouts = *spec.rollouts;
  const int64_t evaluated = evaluated_prompt_tokens(recipe, documents);
  RequestSizes sizes;
  sizes.sequences = std::min(recipe.batch, rollouts.rank_answers());
  sizes.prompt_tokens = std::max(rollouts.prompt_tokens, evaluated);
  // A group's prompt is read once.
  const int64_t prompts = (sizes.sequences + rollouts.group - 1) / rollouts.group;
  sizes.entering_tokens = prompts * sizes.prompt_tokens;
  sizes.answer_tokens = rollouts.completion_tokens;
  sizes.request_tokens = sizes.prompt_tokens + rollouts.completion_tokens - 1;
  const auto uses_long_factors = [&](int64_t prompt) {
    return spec.model.rope.uses_long_factors(prompt + rollouts.completion_tokens);
  };
  if (uses_long_factors(sizes.prompt_tokens) != uses_long_factors(rollouts.prompt_tokens))
    recipe.fail(recipe.eval_data.empty() ? "val_set_size" : "eval_data",
                fmt::format("has a prompt of {} tokens, with which answers would have the "
                            "positions of long texts (longrope), and those that are learned from "
                            "have the others; give a max_length that leaves such prompts out",
                            evaluated));
  return shape_of(sizes, spec.model);
}

}  // namespace

// The documents of training come first, then those of each evaluation set.
int64_t asked_records(const formats::Recipe& recipe, const JobDocuments& documents) {
  int64_t records = 0;
  for (size_t set = 1; set < documents.files.size(); ++set)
    records += std::min(recipe.eval_generate, documents.files[set].size());
  return records > 0 ? records : recipe.eval_generate;
}

int64_t asked_prompt_tokens(const JobDocuments& documents,
                            const base::PerStream<int64_t>& row_tokens) {
  const auto prompt_of = [](const auto& tokens) -> int64_t {
    return tokens.has_encoder() ? tokens[base::TokenStream::encoder] : tokens.decoder();
  };
  int64_t longest = 0;
  for (size_t set = 1; set < documents.files.size(); ++set)
    longest = std::max(longest, prompt_of(documents.files[set].longest()));
  return longest > 0 ? longest : prompt_of(row_tokens);
}

std::optional<InferenceShape> generation_shape(const formats::Recipe& recipe,
                                               const TrainingSpec& spec,
                                               const JobDocuments& documents) {
  if (spec.rollouts) return rollout_shape(recipe, spec, documents);
  check_answer_keys(recipe);
  if (recipe.eval_generate == 0) return std::nullopt;
  if (spec.ranks.ranks() > 1)
    recipe.fail("eval_generate",
                fmt::format("generates on one device, and this run has {}; leave it out, and ask "
                            "the trained model with snug evaluate",
                            spec.ranks.ranks()));
  const int64_t positions = spec.model.max_position;
  const int64_t prompt = std::min(asked_prompt_tokens(documents, spec.row_tokens), positions - 1);
  const int64_t answer = std::min(recipe.max_new_tokens, positions);
  RequestSizes sizes;
  sizes.sequences = std::min(recipe.batch, asked_records(recipe, documents));
  sizes.prompt_tokens = prompt;
  sizes.entering_tokens = sizes.sequences * prompt;
  sizes.answer_tokens = answer + (spec.model.repeats_prompt ? prompt : 0);
  sizes.request_tokens = std::min(prompt + answer - 1, positions);
  InferenceShape shape = shape_of(sizes, spec.model);
  shape.candidates = 1;  // answers are greedy
  return shape;
}

}  // namespace snug::plan
