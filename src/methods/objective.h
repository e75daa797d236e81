// What a job learns, as a rewrite of the forward program: an objective is a row of one table, which
// everything reads that plans, loads, runs or reports a job. The forward program ends in the losses
// of tokens; an objective says what is made of them. A new objective is a file in this folder with
// its row, a word in formats/recipe/choices.h, and what its loss is (program/kinds/, backends/).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "formats/recipe/choices.h"
#include "methods/step_inputs.h"
#include "program/ir/program.h"

namespace snug::methods {

using ObjectiveKind = formats::Objective;

// Where the log-probabilities that a model is compared with come from.
enum class ReferenceModel : uint8_t {
  none,         // nothing is compared
  adapter_off,  // the same weights without the adapter, in a program before each micro-batch
  kept,         // made before training, of the model as it begins, and given with the batch
};

// An objective looks at what is its own.
struct ObjectiveOptions {
  ObjectiveKind kind = ObjectiveKind::next_token;
  ReferenceModel reference = ReferenceModel::none;
  double beta = 0.1;
  double desirable_weight = 1;
  double undesirable_weight = 1;
};

struct Objective {
  ObjectiveKind kind;
  // Documents that belong together, and lie side by side in one row.
  int64_t group = 1;
  // The one form of its records; automatic: any that has an answer to learn.
  formats::DataFormat data = formats::DataFormat::automatic;
  bool compares = false;  // with the log-probabilities of a reference
  // Each record has one answer and says whether it is desirable. A group is the record's document
  // and its prompt with another record's answer (text/record/mismatched_answers.h).
  bool is_labelled = false;
  // The first document of a group is learned with its prompt, so that all its tokens are targets.
  bool learns_prompts = false;
  // What it measures next to the loss, in the order of the tensor kMeasuresName.
  std::span<const std::string_view> measures{};
  // The numbers that its programs read with each step.
  std::span<const StepInput> inputs{};
  // Its loss is a sum over tokens times one of these numbers. An evaluation adds up such sums and
  // divides them once; losses of other objectives may be of several means.
  bool is_token_mean = false;
  // Turns a forward program that ends in the losses of tokens into one that ends in `loss` (1).
  program::Program (*finish)(const program::Program& forward, const ObjectiveOptions& options);
};

const Objective& objective_of(ObjectiveKind kind);

// The forward program up to the log-probability of each segment: `result` (segments) f32 of
// lifetime step, the sum over the tokens of a segment that carry loss.
program::Program log_probabilities(const program::Program& forward, std::string_view result);

// Rows, each in a file of its own.
extern const Objective kNextToken;
extern const Objective kDpo;
extern const Objective kOrpo;
extern const Objective kKto;

}  // namespace snug::methods
