// The perplexity of texts in overlapping windows, with the figure of transformers' guide
// "Perplexity of fixed-length models".
#pragma once

#include "formats/recipe/recipe.h"
#include "generate/evaluation/figures.h"
#include "generate/evaluation/likelihoods.h"
#include "generate/evaluation/run_of_model.h"

namespace snug::generate {

struct TextPerplexity {
  Figure perplexity{};  // `documents` counts the tokens that are scored
  double loss = 0;
  int64_t texts = 0;
  int64_t window = 0;
  int64_t stride = 0;
  RunOfModel run{};
};

// Whether recipe.data are texts to score: `stride` is given, or they are plain text.
bool asks_for_perplexity(const formats::Recipe& recipe);

// Joins the texts of recipe.data with an empty line between them, as the guide does. Throws
// UserError.
TextPerplexity text_perplexity(const ModelToAsk& model);

// The figure of the guide: the mean of a window's losses counts once for each id that it scores,
// but one fewer in a window that begins with ids which are not scored.
Figure strided_figure(std::span<const ScoredIds> windows, std::span<const Likelihood> scored);

}  // namespace snug::generate
