// What a job learns, as a rewrite of the forward program. Every objective is a row of one table,
// and everything that plans, loads, runs or reports a job reads that table. The forward program
// ends in the losses of tokens; an objective computes its loss from them. To add an objective, add
// a file with its row to this folder, a word to formats/recipe/choices.h, and the operations of its
// loss (program/kinds/, backends/).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "formats/recipe/choices.h"
#include "formats/recipe/guard_keys.h"
#include "methods/step_inputs.h"
#include "program/ir/program.h"

namespace snug::methods {

using ObjectiveKind = formats::Objective;

// Where the reference model's log-probabilities come from.
enum class ReferenceModel : uint8_t {
  none,         // there is no reference model
  adapter_off,  // the same weights without the adapter, run before each micro-batch
  kept,         // computed before training from the initial model, and given with each batch
};

// The options of all objectives; each objective reads only its own.
struct ObjectiveOptions {
  ObjectiveKind kind = ObjectiveKind::next_token;
  ReferenceModel reference = ReferenceModel::none;
  double beta = 0.1;
  base::PreferenceLoss loss = base::PreferenceLoss::sigmoid;
  double label_smoothing = 0;
  double simpo_gamma = 0;
  double label_smoothing_factor = 0;  // of tokens
  // Of learning from rewards.
  double epsilon = 0.2;
  double epsilon_high = 0.2;
  double delta = 0;  // 0: off
  bool sequence_ratio = false;
  // The answers are made by the very weights that learn from them, so that the log-probabilities
  // that they were made with are those of the step.
  bool on_policy = false;
  bool corrects_divergence = true;  // multiplies it by the ratio
  float temperature = 1;            // of all log-probabilities
  double desirable_weight = 1;
  double undesirable_weight = 1;
};

// The forward program up to the log-probability of each segment: `result` (segments) f32, of
// lifetime step, is the sum over the segment's tokens that carry loss.
program::Program log_probabilities(const program::Program& forward, const ObjectiveOptions& options,
                                   std::string_view result);

struct Objective {
  ObjectiveKind kind;
  // The number of documents that belong together and are placed in one row.
  int64_t group = 1;
  // The record form that the objective needs; automatic: any form with an answer to learn.
  formats::DataFormat data = formats::DataFormat::automatic;
  bool compares = false;  // needs a reference model's log-probabilities
  // Each record has one answer, with a label that says whether it is desirable. A group is the
  // record's document, and a document of its prompt with another record's answer
  // (text/record/mismatched_answers.h).
  bool is_labelled = false;
  // The prompt of a group's first document is learned too, so that all tokens of that document are
  // targets.
  bool learns_prompts = false;
  // Its documents are prompts. The run makes several answers to each, has them rewarded, and learns
  // from these.
  bool makes_answers = false;
  // The names of what it measures besides the loss, in the order of the tensor kMeasuresName.
  std::span<const std::string_view> measures{};
  // The numbers that its programs read in each step.
  std::span<const StepInput> inputs{};
  // The loss is a sum over tokens times one of these numbers, so an evaluation adds up the sums of
  // all batches and divides once. The loss of another objective may combine several means.
  bool is_token_mean = false;
  // Turns a forward program that ends in the losses of tokens into one that ends in `loss` (1).
  program::Program (*finish)(const program::Program& forward, const ObjectiveOptions& options);
  // What is a fault when this is learned, and stops the run.
  formats::GuardSet guards = formats::kAllGuards;
  // The forward program up to what is needed of the reference model, under the name `result`.
  program::Program (*reference)(const program::Program& forward, const ObjectiveOptions& options,
                                std::string_view result) = log_probabilities;
  // Its loss is one of the margin between two answers (backends/formulas/preference_loss.h).
  bool has_margin = false;
  // What evaluations measure and training does not, and what makes their program of the forward
  // program; empty and null: they measure what training does. Asked for by the functions below.
  std::span<const std::string_view> evaluation_measures{};
  program::Program (*finish_evaluation)(const program::Program& forward,
                                        const ObjectiveOptions& options) = nullptr;
};

// The names of what evaluations measure besides the loss, in the order of the tensor kMeasuresName.
// Where the loss is a mean over tokens they are sums over tokens, which become means as it does.
std::span<const std::string_view> measures_of_evaluation(const Objective& objective);

// Turns a forward program that ends in the losses of tokens into that of an evaluation.
program::Program finish_evaluation(const Objective& objective, const program::Program& forward,
                                   const ObjectiveOptions& options);

const Objective& objective_of(ObjectiveKind kind);

// The rows of the table, each in a file of its own.
extern const Objective kNextToken;
extern const Objective kDpo;
extern const Objective kOrpo;
extern const Objective kKto;
extern const Objective kGrpo;
extern const Objective kSimpo;

}  // namespace snug::methods
