#include "cli/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/text_chart.h"
#include "plan/document/document.h"
#include "report/headlines.h"
#include "report/html.h"
#include "report/metric_charts.h"

namespace snug::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::array<std::string_view, 3> kKeysOfPlace{"output_dir", "overwrite_output_dir",
                                                       "resume_from_checkpoint"};

// "1.526 (1.415)": the last value and the best.
std::string last_and_best(const RunSummary& run, const report::Headline& headline) {
  const report::MetricsCurve* curve = report::curve_of(run.curves, headline);
  if (curve == nullptr) return "-";
  return fmt::format("{} ({})", report::metric_text(curve->last()),
                     report::metric_text(report::best_of(*curve, headline)));
}

// Those that a table has a column for: the losses, and what one of the runs has.
std::vector<report::Headline> headlines_of(std::span<const RunSummary> runs) {
  std::vector<report::Headline> found;
  for (const report::Headline& headline : report::kHeadlines)
    if (!headline.is_greatest || std::ranges::any_of(runs, [&](const RunSummary& run) {
          return report::curve_of(run.curves, headline) != nullptr;
        }))
      found.push_back(headline);
  return found;
}

std::string steps_text(const RunSummary& run) {
  return run.total_steps > 0 ? fmt::format("{}/{}", run.steps, run.total_steps)
                             : std::to_string(run.steps);
}

std::string bytes_text(std::optional<int64_t> bytes) {
  return bytes ? plan::readable_bytes(*bytes) : "-";
}

// The values of a key in all runs, as far as they have it.
std::vector<std::string> values_of(std::span<const RunSummary> runs, const std::string& key) {
  std::vector<std::string> values;
  for (const RunSummary& run : runs) {
    const auto found =
        std::ranges::find(run.recipe, key, &std::pair<std::string, std::string>::first);
    values.push_back(found == run.recipe.end() ? "-" : found->second);
  }
  return values;
}

char letter_of(size_t run) {
  constexpr size_t kLetters = 26;
  return static_cast<char>('a' + run % kLetters);
}

std::string chart_of(std::span<const RunSummary> runs, const report::Headline& headline) {
  constexpr double kWindow = 5;
  std::vector<TextLine> lines;
  for (size_t i = 0; i < runs.size(); ++i)
    if (const report::MetricsCurve* curve = runs[i].curves.find(headline.key))
      lines.push_back({letter_of(i), curve->steps, report::smoothed(curve->values, kWindow)});
  const std::string chart = text_chart(lines);
  return chart.empty() ? "" : fmt::format("\n{}, smoothed\n{}", headline.words, chart);
}

}  // namespace

Rows run_table(std::span<const RunSummary> runs) {
  const std::vector<report::Headline> headlines = headlines_of(runs);
  Rows rows{{"run", "state", "model", "method", "steps"}};
  rows.reserve(runs.size() + 1);
  for (const report::Headline& headline : headlines)
    rows.front().push_back(fmt::format("{} (best)", headline.column));
  for (const char* name : {"tokens/s", "planned", "measured", "last step"})
    rows.front().emplace_back(name);
  for (const RunSummary& run : runs) {
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{
        run.name, std::string(word_of(run.state)), run.model, run.method, steps_text(run)});
    for (const report::Headline& headline : headlines) row.push_back(last_and_best(run, headline));
    row.push_back(run.tokens_per_second ? fmt::format("{:.0f}", *run.tokens_per_second) : "-");
    row.push_back(bytes_text(run.planned_bytes));
    row.push_back(bytes_text(run.measured_bytes));
    row.push_back(run.date);
  }
  return rows;
}

Rows recipe_differences(std::span<const RunSummary> runs) {
  Rows rows{{"key"}};
  std::vector<std::string> keys;
  for (const RunSummary& run : runs) {
    rows.front().push_back(run.name);
    for (const auto& [key, value] : run.recipe)
      if (std::ranges::find(keys, key) == keys.end() &&
          std::ranges::find(kKeysOfPlace, key) == kKeysOfPlace.end())
        keys.push_back(key);
  }
  for (const std::string& key : keys) {
    std::vector<std::string> row = values_of(runs, key);
    if (std::ranges::adjacent_find(row, std::not_equal_to<>()) == row.end()) continue;
    row.insert(row.begin(), key);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string table_text(const Rows& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string comparison_text(std::span<const RunSummary> runs) {
  const Rows differences = recipe_differences(runs);
  std::string text = differences.size() > 1 ? fmt::format("\nwhat their recipes differ in\n{}",
                                                          table_text(differences))
                                            : "\ntheir recipes do not differ\n";
  std::string charts;
  for (const report::Headline& headline : report::kHeadlines) charts += chart_of(runs, headline);
  if (charts.empty()) return text + "\nnone of them has a step\n";
  text += charts + "\n";
  for (size_t i = 0; i < runs.size(); ++i)
    text += fmt::format("{} {}\n", letter_of(i), runs[i].name);
  return text;
}

std::string comparison_page(std::span<const RunSummary> runs) {
  report::Page page(runs.size() == 1 ? runs.front().name : fmt::format("{} runs", runs.size()));
  page.table(run_table(runs));
  const Rows differences = recipe_differences(runs);
  if (differences.size() > 1) {
    page.heading("What their recipes differ in");
    page.table(differences);
  }
  std::vector<report::ChartedRun> charted;
  for (const RunSummary& run : runs)
    charted.push_back({runs.size() == 1 ? "" : run.name, &run.curves});
  report::add_metric_charts(charted, page);
  return page.text();
}

nlohmann::ordered_json json_of(const RunSummary& run) {
  nlohmann::ordered_json json{{"folder", run.name}, {"state", word_of(run.state)},
                              {"model", run.model}, {"method", run.method},
                              {"steps", run.steps}, {"last_step_at", run.date}};
  if (run.total_steps > 0) json["total_steps"] = run.total_steps;
  if (!run.last_words.empty()) json["last_words"] = run.last_words;
  for (const report::Headline& headline : report::kHeadlines)
    if (const report::MetricsCurve* curve = report::curve_of(run.curves, headline)) {
      json[fmt::format("last_{}", headline.key)] = curve->last();
      json[fmt::format("best_{}", headline.key)] = report::best_of(*curve, headline);
    }
  if (run.tokens_per_second) json["tokens_per_second"] = *run.tokens_per_second;
  if (run.planned_bytes) json["planned_bytes"] = *run.planned_bytes;
  if (run.measured_bytes) json["measured_bytes"] = *run.measured_bytes;
  return json;
}

}  // namespace snug::cli
