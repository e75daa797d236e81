// `snug score`: computes the log-probability that a model gives to every token of a text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/inference.h"
#include "formats/recipe/recipe.h"

namespace snug::generate {

// The sizes for scoring one text of this many tokens, whose logits all go to the host in chunks.
// `encoder_tokens`: the length of the prompt, where an encoder reads it.
plan::InferenceShape score_shape(int64_t tokens, int64_t encoder_tokens = 0);

// Natural logarithms of the probability of ids[t] given ids[0] to ids[t - 1], for t >= 1: one fewer
// than there are ids. `on_logits`, if given, is called with the logits (vocab) that follow each id,
// in order, the last id included. Needs an inference with all_logits.
std::vector<double> log_probabilities(
    engine::Inference& inference, std::span<const int32_t> ids,
    const std::function<void(std::span<const float>)>& on_logits = nullptr);

// The log-probability that an encoder-decoder gives to each id of `answer`, given the ids before it
// and the encoder's input. `on_logits` is called with the logits (vocab) that predict each id.
std::vector<double> answer_log_probabilities(
    engine::Inference& inference, std::span<const int32_t> prompt, std::span<const int32_t> answer,
    const std::function<void(std::span<const float>)>& on_logits = nullptr);

// Scores recipe.ids or recipe.prompt (with the tokens that the tokenizer adds around a text).
// Prints a line per token; with `json`, one object: ids, logprobs (of ids[1], ids[2], ...: nothing
// precedes the first id, so it has no entry), loss (their mean, negated), device.peak_bytes.
// logits_out gets a safetensors file with `logits` (tokens, vocab) f32, where row t predicts ids[t
// + 1]. For an encoder-decoder, recipe.answer_ids or recipe.answer is scored: every id has an
// entry, and row t of the logits predicts ids[t]. Returns 0. Throws UserError; with exit code 3
// when the job does not fit the budget.
int score(const formats::Recipe& recipe, bool json);

}  // namespace snug::generate
