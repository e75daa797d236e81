#include "generate/evaluation/task_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "base/console.h"
#include "base/error.h"
#include "base/seconds_since.h"
#include "engine/questions/prompt.h"
#include "generate/evaluation/answers.h"
#include "generate/evaluation/document_scores.h"
#include "generate/evaluation/likelihoods.h"
#include "generate/evaluation/shown_documents.h"
#include "generate/evaluation/task_data.h"
#include "generate/recipe_request.h"
#include "text/chat/jinja/limits.h"

namespace snug::generate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kNewTokens = 256;  // the harness's, where a task says nothing

// A task with what it asks and what came of it.
struct AskedTask {
  const Task& task;
  std::vector<TaskQuestion> questions;
  // For each question and each of its pairs, how many texts it is scored in: one, or its windows.
  std::vector<std::vector<size_t>> texts{};
  std::vector<std::vector<ScoredPair>> pairs{};
  std::vector<std::string> answers{};
};

// What a document throws while it is read or its answer is compared, at the document's place.
template <typename Function>
auto at_document(const TaskQuestion& question, const Function& function) {
  try {
    return function();
  } catch (const text::jinja::TemplateError& error) {
    throw base::UserError(error.what(), question.where);
  } catch (const std::invalid_argument& error) {
    throw base::UserError(error.what(), question.where);
  }
}

AskedTask asked_task(const Task& task) {
  AskedTask asked{.task = task, .questions = {}};
  const std::vector<TaskDocument> documents = read_documents(task.files);
  ShownDocuments shown(task, task.listed.empty() ? read_documents(task.shot_files) : task.listed);
  if (documents.empty())
    throw base::UserError("the task has no document: its files hold no record", task.where);
  int64_t without = 0;
  for (const TaskDocument& document : documents) {
    asked.questions.push_back(task_question(task, document, shown.before(document)));
    const TaskQuestion& question = asked.questions.back();
    if (!question.choices.empty() && question.right.empty() && without++ == 0)
      base::say("{}: the document at {} expects none of its choices", task.name,
                base::to_string(question.where));
  }
  if (without > 0)
    base::say("{}: {} of {} documents expect none of their choices and count as wrong", task.name,
              without, documents.size());
  return asked;
}

class TaskRunner {
 public:
  TaskRunner(const ModelToAsk& model, std::span<const Task> tasks, RunOfModel& run)
      : model_(model), run_(run), window_(model.source.config.max_position) {
    if (model.recipe.is_given("max_length") && model.recipe.max_length > 0)
      window_ = std::min(window_, model.recipe.max_length);
    for (const Task& task : tasks) asked_.push_back(asked_task(task));
  }

  std::vector<TaskResult> results() {
    score();
    answer();
    std::vector<TaskResult> results;
    for (const AskedTask& asked : asked_) results.push_back(result_of(asked));
    return results;
  }

 private:
  static bool generates(const AskedTask& asked) {
    return asked.task.output == OutputType::generate_until;
  }

  void add_texts(AskedTask& asked, std::vector<ScoredIds>& texts) {
    int64_t cut = 0;
    for (const TaskQuestion& question : asked.questions) {
      std::vector<size_t>& counts = asked.texts.emplace_back();
      for (const TaskQuestion::Pair& pair : question.pairs) {
        const std::vector<ScoredIds> parts = ids_of(asked.task, question, pair);
        counts.push_back(parts.size());
        texts.insert(texts.end(), parts.begin(), parts.end());
        cut += std::ranges::count(parts, true, &ScoredIds::is_cut);
      }
    }
    tell_cut(asked, cut, window_);
  }

  std::vector<ScoredIds> ids_of(const Task& task, const TaskQuestion& question,
                                const TaskQuestion::Pair& pair) const {
    try {
      if (task.output == OutputType::loglikelihood_rolling)
        return rolling_windows(model_.tokenizer, pair.continuation, window_);
      return {continuation_ids(model_.tokenizer, pair.context, pair.continuation, window_)};
    } catch (const base::UserError& error) {
      throw base::UserError(error.what(), question.where);
    }
  }

  static void tell_cut(const AskedTask& asked, int64_t cut, int64_t window) {
    if (cut > 0)
      base::say(
          "{}: {} texts have more than {} tokens; what stands before their last ones is not "
          "read",
          asked.task.name, cut, window);
  }

  // Scores the texts of all tasks, and puts the windows of each pair together again.
  void score() {
    std::vector<ScoredIds> texts;
    for (AskedTask& asked : asked_)
      if (!generates(asked)) add_texts(asked, texts);
    if (texts.empty()) return;
    engine::Inference inference(model_.recipe, model_.source,
                                likelihood_shape(texts, model_.recipe.batch));
    const Clock::time_point begin = Clock::now();
    const std::vector<Likelihood> scored = likelihoods(inference, texts);
    run_.add(base::seconds_since(begin), inference);
    size_t next = 0;
    for (AskedTask& asked : asked_)
      for (const std::vector<size_t>& counts : asked.texts) {
        std::vector<ScoredPair>& pairs = asked.pairs.emplace_back();
        for (const size_t count : counts) {
          pairs.push_back({0, true});
          for (size_t i = 0; i < count; ++i, ++next) {
            pairs.back().log_probability += scored[next].sum();
            pairs.back().is_greedy = pairs.back().is_greedy && scored[next].is_greedy;
          }
        }
      }
  }

  engine::AnswerEnd end_of(const AnswerRules& rules) const {
    return answer_end(engine::end_ids(model_.recipe, model_.tokenizer, false), rules.until,
                      &model_.tokenizer);
  }

  int64_t new_tokens_of(const Task& task) const {
    const int64_t own =
        model_.recipe.is_given("max_new_tokens") ? model_.recipe.max_new_tokens : kNewTokens;
    const int64_t most = task.answers.max_new_tokens.value_or(own);
    if (most >= window_)
      throw base::UserError(
          fmt::format(
              "the task asks for up to {} new tokens, and a window has {}, which leaves none "
              "for the prompt; say generation_kwargs: {{max_gen_toks: {}}}",
              most, window_, std::max<int64_t>(1, window_ / 2)),
          task.where);
    return most;
  }

  void add_prompts(const AskedTask& asked, std::vector<AskedPrompt>& prompts) const {
    const AnswerRules& rules = asked.task.answers;
    engine::Request request{.prompt = {},
                            .max_new_tokens = new_tokens_of(asked.task),
                            .sampling = {.temperature = rules.temperature,
                                         .top_k = rules.top_k,
                                         .top_p = rules.top_p,
                                         .seed = model_.recipe.seed},
                            .end = end_of(rules)};
    const int64_t most = window_ - request.max_new_tokens;
    int64_t cut = 0;
    for (const TaskQuestion& question : asked.questions) {
      request.prompt = text_ids(model_.tokenizer, question.pairs.front().context);
      if (request.prompt.empty())
        throw base::UserError(
            "the prompt has no token to begin with; write something into doc_to_text",
            question.where);
      if (std::ssize(request.prompt) > most) {
        request.prompt.erase(request.prompt.begin(), request.prompt.end() - most);
        ++cut;
      }
      prompts.push_back({request});
      ++request.sample;
    }
    tell_cut(asked, cut, most);
  }

  void answer() {
    std::vector<AskedPrompt> prompts;
    for (const AskedTask& asked : asked_)
      if (generates(asked)) add_prompts(asked, prompts);
    const std::vector<std::string> answers = answers_to(model_, prompts, run_);
    auto next = answers.begin();
    for (AskedTask& asked : asked_) {
      if (!generates(asked)) continue;
      asked.answers.assign(next, next + std::ssize(asked.questions));
      next += std::ssize(asked.questions);
    }
  }

  static TaskResult result_of(const AskedTask& asked) {
    TaskResult result{.name = asked.task.name, .documents = std::ssize(asked.questions)};
    for (const FilterChain& chain : asked.task.filters)
      for (const TaskMetric& metric : asked.task.metrics) {
        result.figures.push_back(figure_of(asked, chain, metric));
        result.figures.back().metric = base::word_of(metric.metric);
        result.figures.back().filter = chain.name;
      }
    for (size_t i = 0; i < asked.questions.size(); ++i) result.samples.push_back(sample(asked, i));
    return result;
  }

  static Figure figure_of(const AskedTask& asked, const FilterChain& chain,
                          const TaskMetric& metric) {
    if (asked.task.output == OutputType::loglikelihood_rolling) {
      std::vector<Weighed> texts;
      for (size_t i = 0; i < asked.questions.size(); ++i)
        texts.push_back(
            text_score(metric.metric, asked.questions[i], asked.pairs[i].front().log_probability));
      return metric.metric == Metric::bits_per_byte ? bits_figure(texts)
                                                    : weighed_perplexity_figure(texts);
    }
    std::vector<double> scores;
    for (size_t i = 0; i < asked.questions.size(); ++i) {
      const TaskQuestion& question = asked.questions[i];
      scores.push_back(at_document(question, [&] {
        return generates(asked)
                   ? answer_score(metric.match, question, chain.apply(asked.answers[i]))
                   : pair_score(metric.metric, question, asked.pairs[i]);
      }));
    }
    return metric.metric == Metric::perplexity ? perplexity_figure(scores) : mean_figure(scores);
  }

  static nlohmann::json sample(const AskedTask& asked, size_t i) {
    const TaskQuestion& question = asked.questions[i];
    nlohmann::json sample = {{"line", question.where.line}};
    if (!generates(asked)) {
      nlohmann::json pairs = nlohmann::json::array();
      for (const ScoredPair& pair : asked.pairs[i])
        pairs.push_back({{"log_probability", pair.log_probability}, {"is_greedy", pair.is_greedy}});
      sample["scored"] = pairs;
      if (!question.choices.empty()) sample["right"] = question.right;
      return sample;
    }
    sample["answer"] = asked.answers[i];
    sample["expected"] = question.expected;
    for (const FilterChain& chain : asked.task.filters)
      sample["filtered"][chain.name] = chain.apply(asked.answers[i]);
    return sample;
  }

  const ModelToAsk& model_;
  RunOfModel& run_;
  int64_t window_;
  std::vector<AskedTask> asked_;
};

}  // namespace

std::vector<TaskResult> run_tasks(const ModelToAsk& model, std::span<const Task> tasks,
                                  RunOfModel& run) {
  if (model.source.config.has_encoder())
    model.recipe.fail("tasks",
                      "are not built for models with an encoder; give data=, questions "
                      "with their answers");
  return TaskRunner(model, tasks, run).results();
}

}  // namespace snug::generate
