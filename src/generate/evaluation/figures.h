// A metric over the documents of a task, with its standard error. Pure functions. Means have
// lm-evaluation-harness's formula: the standard deviation of the sample by the root of its size.
// Perplexities have the delta method's, the limit of the harness's bootstrap, which draws by chance
// and which it does not do for those by word and by byte.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace snug::generate {

struct Figure {
  std::string metric{};
  std::string filter = "none";
  double value = 0;
  std::optional<double> standard_error{};  // nothing for a single document
  int64_t documents = 0;                   // or tokens, for the perplexity of a text
};

// The mean.
Figure mean_figure(std::span<const double> values);
// exp(-mean) of log-probabilities.
Figure perplexity_figure(std::span<const double> values);

// A document's log-probability, and how many words or bytes it has.
struct Weighed {
  double log_probability = 0;
  double weight = 0;
};
// exp(-sum of log-probabilities / sum of weights).
Figure weighed_perplexity_figure(std::span<const Weighed> documents);
// -(sum of log-probabilities / sum of weights) / ln 2.
Figure bits_figure(std::span<const Weighed> documents);

}  // namespace snug::generate
