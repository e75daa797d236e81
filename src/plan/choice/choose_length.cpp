// Stages: try rows of 1, 2, 3, ... times the longest document, if that number divides the rows of a
// step, and keep the length with the most tokens per second; where none fits, find the longest
// length that does by bisection.
#include "plan/choice/choose_length.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plan/choice/change.h"
#include "plan/choice/choose_rows.h"
#include "plan/choice/fit.h"

namespace snug::plan {
namespace {

using formats::Recipe;

// Where rows are filled to this degree, longer rows could hold at most 1 % more. They cannot
// improve the micro-batch either if its number of rows is open.
constexpr double kFullRows = 0.99;

std::vector<std::pair<std::string, int64_t>> keys_of(const base::PerStream<int64_t>& tokens) {
  if (!tokens.has_encoder()) return {{"max_length", tokens.decoder()}};
  return {{"max_length", tokens[base::TokenStream::encoder]},
          {"max_target_length", tokens.decoder()}};
}

// The recipe's words for a length, such as "max_length=700".
std::string recipe_words(const base::PerStream<int64_t>& tokens) {
  std::string words;
  for (const auto& [key, value] : keys_of(tokens))
    words += fmt::format("{}{}={}", words.empty() ? "" : " ", key, value);
  return words;
}

double tokens_of_step(const Recipe& recipe, const RowsOfLength& rows) {
  return rows.tokens * static_cast<double>(recipe.per_device_train_batch_size) *
         static_cast<double>(recipe.gradient_accumulation_steps);
}

}  // namespace

int64_t most_tokens(const models::ModelConfig& model) {
  return std::min(model.max_position, kMaxAutoLength);
}

Recipe with_open_length(const Recipe& recipe, const models::ModelConfig& model) {
  if (recipe.max_length > 0) return recipe;
  Recipe open = recipe;
  open.max_length = most_tokens(model);
  open.per_device_train_batch_size = 0;
  return open;
}

int64_t of_max_length(const base::PerStream<int64_t>& tokens) {
  return tokens.has_encoder() ? tokens[base::TokenStream::encoder] : tokens.decoder();
}

std::string length_text(const base::PerStream<int64_t>& tokens) {
  if (!tokens.has_encoder()) return fmt::format("{} tokens", tokens.decoder());
  return fmt::format("{} tokens of prompts and {} of answers", of_max_length(tokens),
                     tokens.decoder());
}

Recipe with_length(const Recipe& recipe, const base::PerStream<int64_t>& longest, int64_t times) {
  Overrides overrides;
  for (const auto& [key, tokens] : keys_of(longest))
    overrides.emplace_back(key, std::to_string(times * tokens));
  const auto divide = [&](const char* key, int64_t rows) {
    overrides.emplace_back(key, std::to_string(rows / times));
  };
  if (times > 1) divide("gradient_accumulation_steps", recipe.gradient_accumulation_steps);
  if (times > 1 && recipe.train_batch_size > 0) divide("train_batch_size", recipe.train_batch_size);
  return with_overrides(recipe, overrides);
}

LengthChoice::LengthChoice(const TrainingInputs& inputs, const JobDocuments& documents,
                           int64_t reading_bytes, const MeasureProcess& measure)
    : inputs_(inputs),
      documents_(documents),
      reading_bytes_(reading_bytes),
      measure_(measure),
      longest_(documents.shortest_rows()),
      left_(all_times()) {}

std::vector<int64_t> LengthChoice::all_times() const {
  const Recipe& recipe = inputs_.recipe;
  if (!recipe.packing || recipe.max_segments == 1) return {1};
  const int64_t most = most_tokens(inputs_.model.config) / std::ranges::max(longest_);
  std::vector<int64_t> times = micro_batches(recipe.gradient_accumulation_steps);
  std::erase_if(times, [&](int64_t each) { return each > most; });
  return times;
}

std::optional<TrainingSpec> LengthChoice::next() const {
  if (left_.empty()) return std::nullopt;
  return training_spec(with_fewest_rows(with_length(inputs_.recipe, longest_, left_.back())),
                       inputs_.model.config, inputs_.target, documents_);
}

void LengthChoice::take(const RowsOfLength& rows) {
  const int64_t times = left_.back();
  left_.pop_back();
  const Recipe candidate = with_length(inputs_.recipe, longest_, times);
  if (const auto found = fastest_rows(with(candidate, rows.facts), measure_)) {
    const double rate = tokens_of_step(found->recipe, rows) / found->step_seconds;
    if (best_times_ == 0 || rate > best_rate_) {
      best_times_ = times;
      best_rate_ = rate;
    }
  }
  if (is_full_enough(rows, times)) left_.clear();
}

int64_t LengthChoice::best_times() const {
  if (best_times_ == 0) refuse();
  return best_times_;
}

TrainingInputs LengthChoice::with(const Recipe& recipe, DataFacts facts) const {
  return {recipe,           inputs_.model, inputs_.target,
          std::move(facts), false,         inputs_.least_capacity_bytes};
}

bool LengthChoice::is_full_enough(const RowsOfLength& rows, int64_t times) const {
  return inputs_.recipe.per_device_train_batch_size == 0 &&
         rows.tokens >= kFullRows * static_cast<double>(times * longest_.sum());
}

base::PerStream<int64_t> LengthChoice::cut_to(int64_t most) const {
  return longest_.map([&](int64_t tokens) { return std::min(tokens, most); });
}

// What such rows take does not depend on what they hold.
bool LengthChoice::fits_with(int64_t most) const {
  const base::PerStream<int64_t> tokens = cut_to(most);
  const Recipe recipe = with_fewest_rows(with_length(inputs_.recipe, tokens, 1));
  return fastest_rows(with(recipe, {.documents = documents_,
                                    .expected = program::full_rows(tokens),
                                    .reading_bytes = reading_bytes_}),
                      measure_)
      .has_value();
}

// Less than `least`: no row fits that leaves something of each answer.
int64_t LengthChoice::longest_that_fits(int64_t least) const {
  int64_t fits = least - 1;
  int64_t too_long = std::ranges::max(longest_);
  while (too_long - fits > 1) {
    const int64_t middle = fits + (too_long - fits) / 2;
    (fits_with(middle) ? fits : too_long) = middle;
  }
  return fits;
}

void LengthChoice::refuse() const {
  const Recipe& recipe = inputs_.recipe;
  const int64_t rows = with_fewest_rows(recipe).per_device_train_batch_size;
  const int64_t least = std::max<int64_t>(2, documents_.least);
  const int64_t fits = longest_that_fits(least);
  const std::string shorter =
      least == 2 ? "no shorter rows fit either"
                 : fmt::format(
                       "no shorter rows fit either that leave something of each answer, "
                       "which takes {} tokens",
                       least);
  const std::string what =
      fits < least ? shorter
                   : fmt::format("the longest that fits is {}, which cuts {} of the {} documents",
                                 recipe_words(cut_to(fits)), documents_.longer_than(fits),
                                 documents_.size());
  throw base::UserError(
      fmt::format("'max_length' is auto, but {} of {}, as many as the longest document "
                  "has, does not fit; {}. snug plan with {} says what else would make it fit",
                  rows == 1 ? "a row" : fmt::format("a micro-batch of {} rows", rows),
                  length_text(longest_), what, recipe_words(longest_)),
      recipe.given.at("max_length"), kDoesNotFitExitCode);
}

}  // namespace snug::plan
