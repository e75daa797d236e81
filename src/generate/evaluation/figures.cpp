#include "generate/evaluation/figures.h"

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace snug::generate {
namespace {

// A figure with its standard error as yet of its logarithm, or of what it is a function of.
struct Estimate {
  double value = 0;
  std::optional<double> error{};
  int64_t count = 0;
};

Estimate mean_of(std::span<const double> values) {
  SNUG_CHECK(!values.empty(), "a mean of no values");
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  Estimate estimate{.value = mean, .count = std::ssize(values)};
  if (values.size() < 2) return estimate;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  estimate.error = std::sqrt(squares / (count - 1) / count);
  return estimate;
}

// The log-probability by unit of weight: a ratio of two sums, whose error is that of the residuals.
Estimate ratio_of(std::span<const Weighed> documents) {
  SNUG_CHECK(!documents.empty(), "a ratio of no documents");
  double sum = 0;
  double weight = 0;
  for (const Weighed& document : documents) {
    sum += document.log_probability;
    weight += document.weight;
  }
  Estimate estimate{.value = sum / weight, .count = std::ssize(documents)};
  if (documents.size() < 2) return estimate;
  double squares = 0;
  for (const Weighed& document : documents) {
    const double residual = document.log_probability - estimate.value * document.weight;
    squares += residual * residual;
  }
  const auto count = static_cast<double>(documents.size());
  estimate.error = std::sqrt(squares * count / (count - 1)) / weight;
  return estimate;
}

// `slope`: that of the figure as a function of the estimate.
Figure figure_of(const Estimate& estimate, double value, double slope) {
  Figure figure{.value = value, .documents = estimate.count};
  if (estimate.error) figure.standard_error = *estimate.error * slope;
  return figure;
}

}  // namespace

Figure mean_figure(std::span<const double> values) {
  const Estimate mean = mean_of(values);
  return figure_of(mean, mean.value, 1);
}

Figure perplexity_figure(std::span<const double> values) {
  const Estimate mean = mean_of(values);
  const double perplexity = std::exp(-mean.value);
  return figure_of(mean, perplexity, perplexity);
}

Figure weighed_perplexity_figure(std::span<const Weighed> documents) {
  const Estimate ratio = ratio_of(documents);
  const double perplexity = std::exp(-ratio.value);
  return figure_of(ratio, perplexity, perplexity);
}

Figure bits_figure(std::span<const Weighed> documents) {
  const Estimate ratio = ratio_of(documents);
  return figure_of(ratio, -ratio.value / std::numbers::ln2, 1 / std::numbers::ln2);
}

}  // namespace snug::generate
