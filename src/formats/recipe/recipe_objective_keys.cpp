// Keys of objectives, with the names of TRL's trainers.
#include "formats/recipe/recipe_table.h"

namespace snug::formats {
namespace {

constexpr std::string_view kObjectiveAdvice =
    "this objective is not built; objective: dpo, orpo and simpo learn from pairs of answers, "
    "objective: kto from answers that are desirable or not, objective: grpo from rewards of "
    "answers "
    "that the model gives, and objective: next_token from answers alone";
constexpr std::string_view kLossAdvice =
    "this loss of answers is not built; use loss_type: sigmoid, which is that of the DPO paper, or "
    "another that snug train --help lists, or objective: kto, whose only loss is that of its paper "
    "and needs no loss_type";

// At one half all labels mean nothing.
constexpr Range kBelowHalf{.least = 0, .most = 0.5, .most_excluded = true};

}  // namespace

void add_objective_keys(KeyTable& table) {
  table.group("Objective", kTraining, OnResume::free);
  table
      .add<&Recipe::objective>(
          "objective", Objective::next_token,
          "what is learned: next_token: each token of an answer from those before it; dpo, orpo, "
          "simpo: which of two answers is preferred (data with chosen and rejected); kto: whether "
          "an answer is desirable (data with prompt, completion and label); grpo: which of several "
          "answers that the model gives itself are rewarded (data with prompts)")
      .aliases({"stage", "rl"})
      .translations({{"sft", base::word_of(Objective::next_token)},
                     {"pt", base::word_of(Objective::next_token)}})
      .not_built({"ipo", "cpo", "bco", "ppo", "rm"}, kObjectiveAdvice)
      .on_resume(OnResume::fixed);
  table
      .add<&Recipe::beta>(
          "beta", "0.1",
          "dpo, kto, grpo: how strongly the model is held to the reference model (grpo: 0 where "
          "none "
          "is given: not at all); simpo: how much the "
          "difference of the two answers counts; orpo: weight of the odds ratio of the two answers "
          "next to the loss of the preferred one")
      .aliases({"dpo_beta", "pref_beta", "rl_beta"})
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::desirable_weight>("desirable_weight", "1",
                                      "kto: weight of the loss of desirable answers")
      .aliases({"kto_chosen_weight"})
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::undesirable_weight>("undesirable_weight", "1",
                                        "kto: weight of the loss of undesirable answers")
      .aliases({"kto_rejected_weight"})
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::loss_type>(
          "loss_type", LossType::automatic,
          "dpo: how the margin between two answers becomes a loss, sigmoid where none is given; "
          "grpo: what a token counts (grpo, bnpo, dr_grpo, dapo), dapo where none is given")
      .aliases({"pref_loss"})
      .not_built({"aot", "aot_unpaired", "discopop", "sft", "kto", "apo_zero_unpaired"},
                 kLossAdvice)
      .not_built({"orpo", "simpo"},
                 "it is an objective of its own: leave it out, and say objective: orpo or "
                 "objective: simpo")
      .not_built({"nll", "ce", "cross_entropy", "dft", "chunked_nll"},
                 "it says how answers alone are learned, which objective: next_token does in one "
                 "way, by the loss of their tokens; leave it out");
  table
      .add<&Recipe::label_smoothing>(
          "label_smoothing", "0",
          "dpo, simpo: share of the pairs that are taken to have their answers "
          "the wrong way round; needed "
          "by loss_type=exo_pair")
      .aliases({"dpo_label_smoothing"})
      .range(kBelowHalf);
  table
      .add<&Recipe::simpo_gamma>("simpo_gamma", "0.5",
                                 "simpo: by how much the reward of the preferred answer is to be "
                                 "above that of the other")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::label_smoothing_factor>(
          "label_smoothing_factor", "0",
          "next_token: share of each token's loss that is the mean over the vocabulary instead of "
          "the loss of the token itself")
      .range({.least = 0, .most = 1, .most_excluded = true});
  table
      .add<&Recipe::neftune_noise_alpha>(
          "neftune_noise_alpha", "0",
          "noise that is added to the rows of the embedding in training (NEFTune), times the root "
          "of a document's tokens and the embedding's width; 5 to 15 are usual, 0: none")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::precompute_ref_log_probs>(
          "precompute_ref_log_probs", "false",
          "dpo, kto: compute the log-probabilities of the reference model, which is the model "
          "before training, once, and keep them in output_dir; false: in every step, by the model "
          "without its adapter")
      .on_resume(OnResume::fixed);
}

}  // namespace snug::formats
