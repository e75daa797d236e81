// The log-probabilities that a model gives to ids, many texts side by side. The logits of a chunk
// are all that is held of the vocabulary's rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/inference.h"
#include "generate/evaluation/scored_ids.h"

namespace snug::generate {

struct Likelihood {
  std::vector<double> log_probabilities{};  // of each id that is scored
  bool is_greedy = true;                    // greedy decoding would give these ids

  double sum() const;
};

// Sizes for scoring these texts, at most `batch` of them at once.
plan::InferenceShape likelihood_shape(std::span<const ScoredIds> texts, int64_t batch);

// One result for each text, in their order. What texts that follow each other begin with alike is
// read once for all of them, such as the context of several choices: as far as it fills pages, or
// whole where they differ only in the last id. Needs an inference with the shape above.
std::vector<Likelihood> likelihoods(engine::Inference& inference, std::span<const ScoredIds> texts);

}  // namespace snug::generate
