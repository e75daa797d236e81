// Keys of evaluation during a run, of its best checkpoint, of an early end, and of the guards that
// stop it.
#include "formats/recipe/recipe_table.h"

namespace snug::formats {

using base::word_of;

void add_evaluation_keys(KeyTable& table) {
  table.group("Evaluation and the best checkpoint", kTraining, OnResume::ignored);
  table
      .add<&Recipe::eval_strategy>(
          "eval_strategy", EvalStrategy::steps,
          "when eval_data is evaluated: steps, every eval_steps and at the end; epoch, at the end "
          "of each epoch; no, never")
      .aliases({"evaluation_strategy"})
      .translations({{"none", word_of(EvalStrategy::no)}, {"false", word_of(EvalStrategy::no)}});
  table
      .add<&Recipe::eval_steps>("eval_steps", "0",
                                "steps between evaluations, or below 1 their share of all steps; "
                                "0: only at the end, or, where the best checkpoint is asked for, "
                                "as often as checkpoints are written")
      .range(kStepsOrShare);
  table
      .add<&Recipe::eval_metrics>(
          "eval_metrics", "exact",
          "what answers are worth next to the expected texts: a list of exact, rouge1, rouge2, "
          "rougeL, rougeLsum, bleu, edit_distance, edit_similarity, number, choice, regex:PATTERN, "
          "format:PATTERN, json_schema:FILE, length, repetition (docs/evaluation.md); of answers "
          "that evaluate asks for, or eval_generate in training")
      .whole_texts()
      .verbs(kTraining | kEvaluate);
  table.add<&Recipe::eval_on_start>("eval_on_start", "false", "evaluate before the first step too");
  table
      .add<&Recipe::eval_generate>(
          "eval_generate", "0",
          "so many records of each evaluation set are asked in each evaluation, and their answers "
          "compared with what is expected (eval_metrics); 0: none")
      .range({.least = 0, .most = kMaxSequences})
      .translations({{"none", "0"}, {"false", "0"}});
  table
      .add<&Recipe::save_strategy>(
          "save_strategy", SaveStrategy::steps,
          "when checkpoints are written: steps, every save_steps and at the end; epoch, at the end "
          "of each epoch; best, after an evaluation that is the best so far; no, only when a "
          "signal ends the run. The result is written in any case")
      .translations({{"none", word_of(SaveStrategy::no)}, {"false", word_of(SaveStrategy::no)}});
  table.add<&Recipe::load_best_model_at_end>(
      "load_best_model_at_end", "false",
      "the result is the model of the best checkpoint, not that of the last step");
  table
      .add<&Recipe::metric_for_best_model>(
          "metric_for_best_model", "",
          "what of an evaluation says which is the best, with or without eval_ before it: loss, "
          "perplexity, one that the objective measures, a score of answers (eval_generate), or of "
          "several sets NAME_loss")
      .computed("loss, of grpo reward, where the best checkpoint or an early end is asked for");
  table
      .add<&Recipe::greater_is_better>("greater_is_better", "auto",
                                       "whether the best has the greatest value; auto: of what "
                                       "ends with loss or perplexity the least is the best")
      .choices({"auto", "false", "true"})
      .translations({{"no", "false"}, {"yes", "true"}});
  table
      .add<&Recipe::early_stopping_patience>(
          "early_stopping_patience", "0",
          "so many evaluations in a row that are no better than the best before end the run; "
          "0: none do")
      .aliases({"early_stopping_steps", "early_stop_interval"})
      .range({.least = 0, .most = kMaxCount})
      .translations({{"none", "0"}, {"false", "0"}});
  table
      .add<&Recipe::early_stopping_threshold>(
          "early_stopping_threshold", "0",
          "by how much an evaluation must be better to count as better in this")
      .range({.least = 0, .most = kMaxFloat})
      .translations({{"none", "0"}, {"false", "0"}});
  table.group("Guards", kTraining, OnResume::ignored);
  table
      .add<&Recipe::guards>(
          "guards", "all",
          "what stops a run that has gone wrong: all, none, or a list of not_finite, zero_loss, "
          "zero_norm, idle_adapter, loss_increase, worse_evaluation, equal_rewards, cut_answers, "
          "low_entropy, high_kl; no_zero_loss is all others (docs/running.md)")
      .translations({{"true", "all"}, {"false", "none"}})
      .empty_list("none");
  table
      .add<&Recipe::max_loss_increase>(
          "max_loss_increase", "3",
          "guard loss_increase: how many times its best, and more than it was at first, the loss "
          "may be")
      .range({.least = 1, .most = kMaxFloat, .least_excluded = true});
  table
      .add<&Recipe::loss_increase_steps>("loss_increase_steps", "20",
                                         "for so many steps in a row; the best is that "
                                         "of a mean over about as many")
      .range({.least = 1, .most = kMaxCount});
  table
      .add<&Recipe::min_entropy>(
          "min_entropy", "0.001",
          "grpo: guard low_entropy: the least entropy, in nats, that the answers' tokens have in "
          "the mean; 0: any")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::max_kl>("max_kl", "0",
                            "grpo: guard high_kl: how far the model may be from the one that "
                            "training began with, in nats a token, which beta measures; 0: as far "
                            "as it goes")
      .range({.least = 0, .most = kMaxFloat});
}

}  // namespace snug::formats
