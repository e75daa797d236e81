#include "generate/evaluation/evaluate.h"

#include "engine/questions/prompt.h"
#include "generate/evaluation/evaluation_report.h"
#include "generate/evaluation/task_file.h"

namespace snug::generate {
namespace {

void refuse_keys_of_data(const formats::Recipe& recipe) {
  if (!recipe.data.empty())
    recipe.fail("tasks",
                "is given next to data; a task says itself where its data are, so give one "
                "of the two");
  if (recipe.is_given("stride"))
    recipe.fail("stride",
                "is about the perplexity of data; of a task's texts "
                "(loglikelihood_rolling) windows do not overlap, so leave it out");
  if (recipe.is_given("eval_metrics"))
    recipe.fail("eval_metrics",
                "is about answers to the questions of data; a task names its metrics itself "
                "(metric_list), so leave it out");
  for (const char* key : {"chat_template", "data_format", "fields", "roles", "ignore_fields",
                          "on_bad_record", "max_skipped"})
    if (recipe.is_given(key))
      recipe.fail(key,
                  "is about the records of data; a task says itself how its documents are read, so "
                  "leave it out");
}

void evaluate_tasks(const ModelToAsk& model, bool json) {
  const formats::Recipe& recipe = model.recipe;
  refuse_keys_of_data(recipe);
  const std::vector<Task> tasks = read_tasks(recipe.tasks);
  RunOfModel run;
  const std::vector<TaskResult> results = run_tasks(model, tasks, run);
  report_tasks(results, run, json);
}

}  // namespace

int evaluate(const formats::Recipe& recipe, bool json) {
  if (recipe.tasks.empty()) recipe.require("data");
  const models::ModelSource source = runtime::open_model(recipe);
  const text::Tokenizer tokenizer = engine::open_tokenizer(recipe, source);
  const ModelToAsk model{recipe, source, tokenizer};
  if (!recipe.tasks.empty())
    evaluate_tasks(model, json);
  else if (asks_for_perplexity(recipe)) {
    if (recipe.is_given("eval_metrics"))
      recipe.fail("eval_metrics",
                  "is about answers to questions, and of texts there is their perplexity alone; "
                  "leave it out");
    report_text(text_perplexity(model), json);
  } else
    report_data(asked_data(model), json);
  return 0;
}

}  // namespace snug::generate
