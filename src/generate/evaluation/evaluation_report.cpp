#include "generate/evaluation/evaluation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/byte_size.h"
#include "base/console.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::generate {
namespace {

using Json = nlohmann::json;

constexpr size_t kShownAnswers = 5;

Json error_json(const Figure& figure) {
  return figure.standard_error ? Json(*figure.standard_error) : Json();
}

std::string error_text(const Figure& figure) {
  return figure.standard_error ? fmt::format("{:.4f}", *figure.standard_error) : "none";
}

// What all forms of the report end in.
void add_run(Json& json, const RunOfModel& run) {
  json["seconds"] = run.seconds;
  json["planned_bytes"] = run.planned_bytes;
  json["device"] = run.device;
}

std::string run_text(const RunOfModel& run) {
  return fmt::format("{:.1f} s, {} planned", run.seconds,
                     base::readable_byte_size(run.planned_bytes));
}

std::string shown(const std::string& text) {
  return std::string(text::jinja::strip(text, text::jinja::Side::both));
}

// {"rougeL": 0.5}: one number for each metric.
Json scores_json(const AskedData& asked, const AskedData::Answer& answer) {
  Json scores = Json::object();
  for (size_t i = 0; i < asked.figures.size(); ++i)
    scores[asked.figures[i].metric] = answer.scores[i];
  return scores;
}

Json metrics_json(const AskedData& asked) {
  Json metrics = Json::object();
  for (const Figure& figure : asked.figures) {
    metrics[figure.metric] = figure.value;
    metrics[figure.metric + "_stderr"] = error_json(figure);
  }
  return metrics;
}

// The key that the harness gives a figure: "acc,none".
std::string key_of(const Figure& figure, const char* suffix = "") {
  return figure.metric + suffix + "," + figure.filter;
}

}  // namespace

void report_data(const AskedData& asked, bool json) {
  if (json) {
    Json answers = Json::array();
    for (size_t i = 0; i < asked.answers.size(); ++i)
      answers.push_back({{"question", asked.questions[i].shown},
                         {"answer", asked.answers[i].text},
                         {"expected", asked.questions[i].expected},
                         {"correct", asked.answers[i].is_correct},
                         {"scores", scores_json(asked, asked.answers[i])}});
    Json result = {{"exact_match", asked.exact_match.value},
                   {"exact_match_stderr", error_json(asked.exact_match)},
                   {"correct", asked.correct()},
                   {"total", asked.answers.size()},
                   {"metrics", metrics_json(asked)},
                   {"answers", answers}};
    add_run(result, asked.run);
    return base::print("{}\n", result.dump());
  }
  for (size_t i = 0; i < std::min(kShownAnswers, asked.answers.size()); ++i) {
    const AskedData::Answer& answer = asked.answers[i];
    base::print("  {}\n    answer   {}{}\n", asked.questions[i].shown, shown(answer.text),
                answer.is_correct ? "  (correct)" : "");
    if (!answer.is_correct) base::print("    expected {}\n", shown(asked.questions[i].expected));
  }
  base::print("exact match: {} of {} ({:.1f} %), standard error {}, {}\n", asked.correct(),
              asked.answers.size(), 100 * asked.exact_match.value, error_text(asked.exact_match),
              run_text(asked.run));
  // Of exact the line above has said it.
  for (const Figure& figure : asked.figures)
    if (figure.metric != "exact")
      base::print("{}: {:.4f}, standard error {}\n", figure.metric, figure.value,
                  error_text(figure));
}

void report_text(const TextPerplexity& text, bool json) {
  if (json) {
    Json result = {{"perplexity", text.perplexity.value},
                   {"perplexity_stderr", error_json(text.perplexity)},
                   {"loss", text.loss},
                   {"tokens", text.perplexity.documents},
                   {"texts", text.texts},
                   {"max_length", text.window},
                   {"stride", text.stride}};
    add_run(result, text.run);
    return base::print("{}\n", result.dump());
  }
  base::print(
      "perplexity: {:.4f}, standard error {}, of {} tokens in windows of {}, stride {}, {}\n",
      text.perplexity.value, error_text(text.perplexity), text.perplexity.documents, text.window,
      text.stride, run_text(text.run));
}

void report_tasks(std::span<const TaskResult> results, const RunOfModel& run, bool json) {
  if (json) {
    Json report = {
        {"results", Json::object()}, {"documents", Json::object()}, {"samples", Json::object()}};
    for (const TaskResult& task : results) {
      report["documents"][task.name] = task.documents;
      report["samples"][task.name] = task.samples;
      Json& figures = report["results"][task.name];
      for (const Figure& figure : task.figures) {
        figures[key_of(figure)] = figure.value;
        figures[key_of(figure, "_stderr")] = error_json(figure);
      }
    }
    add_run(report, run);
    return base::print("{}\n", report.dump());
  }
  size_t width = 4;
  for (const TaskResult& task : results) width = std::max(width, task.name.size());
  base::print("{:<{}}  {:<16} {:<16} {:>12} {:>15} {:>10}\n", "task", width, "metric", "filter",
              "value", "standard error", "documents");
  for (const TaskResult& task : results)
    for (const Figure& figure : task.figures)
      base::print("{:<{}}  {:<16} {:<16} {:>12.4f} {:>15} {:>10}\n", task.name, width,
                  figure.metric, figure.filter, figure.value, error_text(figure), task.documents);
  base::print("{}\n", run_text(run));
}

}  // namespace snug::generate
