// The names of evaluation sets in metrics. As Hugging Face's Trainer names them, a set's loss is
// eval_NAME_loss; where answers are learned from, a set has eval_NAME_reward in its place. Pure
// functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "methods/objective.h"

namespace snug::train {

inline constexpr std::string_view kLossMeasure = "loss";
// Of objectives whose loss is that of tokens.
inline constexpr std::string_view kPerplexityMeasure = "perplexity";

// The key of what is measured of a set: its loss, or a measure of the objective. An empty name
// stands for all sets together, or for the only one.
std::string evaluation_key(std::string_view set, std::string_view measure);

// What is measured of all sets together, too, by the first of which evaluations are judged: the
// loss, or of an objective that makes answers their reward.
std::span<const std::string_view> measures_of_all(const methods::Objective& objective);

// The keys that evaluations of these sets have, of an objective with these measures, some of which
// are those of all.
std::vector<std::string> evaluation_keys(std::span<const std::string> sets,
                                         std::span<const std::string_view> of_all,
                                         std::span<const std::string_view> measures);

// Names for sets from those that were wanted, in their order. What could not stand in a key, such
// as a space, a slash or a quote, becomes an underscore; one that would have a key of another set
// before it gets a number: for two sets "test" these are "test" and "test_2". `measures`: those of
// the objective.
std::vector<std::string> evaluation_names(std::span<const std::string> wanted,
                                          std::span<const std::string_view> measures);

}  // namespace snug::train
