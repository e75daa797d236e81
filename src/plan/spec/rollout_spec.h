// What learning from rewards requires of a job: how many answers it makes, and the micro-batches
// into which they are packed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/recipe/recipe.h"
#include "methods/objective.h"
#include "plan/job/job.h"
#include "plan/job/rollout_sizes.h"
#include "plan/spec/job_documents.h"
#include "program/work/target.h"

namespace snug::plan {

// The loss of tokens that loss_type names; dapo where it names none. Throws UserError, with the
// recipe's location, for a loss of another objective.
formats::AnswerLoss answer_loss(const formats::Recipe& recipe);

// Requires an objective that makes answers. per_device_train_batch_size counts answers of a
// micro-batch as TRL counts them. Throws UserError, with the recipe's location, for numbers that do
// not divide one another.
RolloutSizes rollout_sizes(const formats::Recipe& recipe, const JobDocuments& documents);

// The tokens that max_length leaves to a prompt.
int64_t most_prompt_tokens(const formats::Recipe& recipe);

// The longest prompt that evaluations ask; 0: they ask none.
int64_t evaluated_prompt_tokens(const formats::Recipe& recipe, const JobDocuments& documents);

// What the host keeps of an evaluation's answers, next to those that are learned from: all of as
// many as are made at once, and what is measured of the others.
int64_t evaluation_host_bytes(const RolloutSizes& sizes, const JobDocuments& documents);

// What an evaluation is judged by where answers are learned from, among its metrics.
inline constexpr std::string_view kRewardMetric = "reward";

// The objective's options. Throws UserError, with the recipe's location, for what cannot be
// combined with it. Reads the spec's model, method and ranks.
methods::ObjectiveOptions rollout_options(const formats::Recipe& recipe, const TrainingSpec& spec);

// Gives the spec micro-batches into which answers are packed one after another, each of as many
// tokens as a few of the longest sequences have: a step runs as many as its answers need, at most
// spec.accumulation. Where later updates learn from answers again whose log-probabilities the
// target makes in another way than it trains, there is a program that makes them as it trains
// (spec.evaluate).
void shape_rollouts(const formats::Recipe& recipe, const JobDocuments& documents,
                    const program::Target& target, TrainingSpec& spec);

// What to say of packing=false, where answers are made.
std::optional<std::string> packing_notice(const formats::Recipe& recipe);

// Sets defaults that learning from rewards has.
void settle_rollouts(formats::Recipe& recipe);

}  // namespace snug::plan
