// `snug score`: what a model thinks of every token of a text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "formats/recipe/recipe.h"
#include "generate/inference.h"

namespace snug::generate {

// Sizes for scoring one text of so many tokens, of which the host gets all logits by chunks.
// `encoder_tokens`: of the prompt, where an encoder reads it.
plan::InferenceShape score_shape(int64_t tokens, int64_t encoder_tokens = 0);

// Natural logarithms of the probability of ids[t] given ids[0] to ids[t - 1], for t >= 1: one less
// than there are ids. `on_logits`, when given, gets the logits (vocab) that follow each id, in
// order, the last one's too. Needs an inference with all_logits.
std::vector<double> log_probabilities(
    Inference& inference, std::span<const int32_t> ids,
    const std::function<void(std::span<const float>)>& on_logits = nullptr);

// The log-probabilities of each id of `answer` by an encoder-decoder, given what comes before it
// and what the encoder reads. `on_logits` gets those of which each is one.
std::vector<double> answer_log_probabilities(
    Inference& inference, std::span<const int32_t> prompt, std::span<const int32_t> answer,
    const std::function<void(std::span<const float>)>& on_logits = nullptr);

// Scores recipe.ids or recipe.prompt (with the tokens that the tokenizer adds around a text).
// Prints a line a token; with `json` one object: ids, logprobs (of ids[1], ids[2], ...: the first
// id has nothing before it and no entry), loss (their mean, negated), device.peak_bytes. logits_out
// gets a safetensors file with `logits` (tokens, vocab) f32: row t is what follows ids[t]. For an
// encoder-decoder recipe.answer_ids or recipe.answer is scored, of which each has an entry and row
// t of the logits is what ids[t] is one of. Returns 0. Throws UserError; with exit code 3 when the
// job does not fit the budget.
int score(const formats::Recipe& recipe, bool json);

}  // namespace snug::generate
