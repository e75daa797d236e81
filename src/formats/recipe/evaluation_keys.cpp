#include "formats/recipe/evaluation_keys.h"

#include <fmt/format.h>

#include <string_view>

#include "base/words.h"

namespace snug::formats {
namespace {

bool is_of_command_line(const Recipe& recipe, std::string_view key) {
  const auto found = recipe.given.find(key);
  return found != recipe.given.end() && found->second.file == kCommandLine;
}

// The key that asks which evaluation of the run is the best; empty: none does.
std::string_view best_asked_by(const Recipe& recipe) {
  if (recipe.load_best_model_at_end) return "load_best_model_at_end";
  if (recipe.early_stopping_patience > 0) return "early_stopping_patience";
  if (recipe.save_strategy == SaveStrategy::best) return "save_strategy";
  return "";
}

}  // namespace

bool is_least_best(std::string_view metric) {
  return metric.ends_with("loss") || metric.ends_with("perplexity") ||
         metric.ends_with("edit_distance");
}

void settle_evaluation_keys(Recipe& recipe) {
  if (is_of_command_line(recipe, "save_steps") && !is_of_command_line(recipe, "save_strategy"))
    recipe.save_strategy = SaveStrategy::steps;
  if (is_of_command_line(recipe, "eval_steps") && !is_of_command_line(recipe, "eval_strategy"))
    recipe.eval_strategy = EvalStrategy::steps;
  if (recipe.evaluates() && recipe.eval_strategy == EvalStrategy::steps &&
      recipe.is_given("eval_strategy") && !recipe.is_given("eval_steps") &&
      recipe.is_given("logging_steps"))
    recipe.eval_steps = recipe.logging_steps;
  if (!best_asked_by(recipe).empty() && recipe.metric_for_best_model.empty())
    recipe.metric_for_best_model = "loss";
}

void check_evaluation_keys(const Recipe& recipe) {
  if (recipe.eval_on_start && !recipe.evaluates())
    recipe.fail("eval_on_start",
                "asks for an evaluation, but there is no eval_data (val_set_size takes it out of "
                "the data)");
  if (recipe.eval_generate > 0 && !recipe.evaluates())
    recipe.fail(
        "eval_generate",
        "asks records of the evaluation data, but there is no eval_data (val_set_size takes "
        "it out of the data)");
  if (recipe.eval_generate > 0 && recipe.eval_strategy == EvalStrategy::no && !recipe.eval_on_start)
    recipe.fail("eval_generate",
                "asks records in each evaluation, but eval_strategy is no; say eval_strategy: "
                "epoch, or steps with eval_steps");
  if (recipe.save_only_model && recipe.ema_decay > 0 && recipe.load_best_model_at_end)
    recipe.fail("load_best_model_at_end",
                "makes the best checkpoint the result, which with ema_decay is the average of the "
                "weights, and the checkpoints of save_only_model do not hold averages; leave one "
                "of the three out");
  const std::string_view key = best_asked_by(recipe);
  if (key.empty()) return;
  if (!recipe.evaluates())
    recipe.fail(key,
                "asks for the best of a run's evaluations, but there is no eval_data (val_set_size "
                "takes it out of the data)");
  if (recipe.eval_strategy == EvalStrategy::no)
    recipe.fail(key,
                "asks for the best of a run's evaluations, but eval_strategy is no; say "
                "eval_strategy: epoch, or steps with eval_steps");
  if (recipe.load_best_model_at_end && recipe.save_strategy == SaveStrategy::no)
    recipe.fail("load_best_model_at_end",
                "takes the result from a checkpoint, but save_strategy is no; say steps, epoch or "
                "best");
}

}  // namespace snug::formats
