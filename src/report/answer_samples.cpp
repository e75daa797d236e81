#include "report/answer_samples.h"

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "report/metric_charts.h"

namespace snug::report {
namespace {

constexpr const char* kFileName = "samples.jsonl";

struct SampleLine {
  int64_t step = 0;
  std::string set;
  std::string prompt;
  std::string answer;
  std::string expected;
  std::string scores;
};

std::string scores_text(const base::JsonObject& scores) {
  std::string text;
  for (const auto& [name, value] : scores.value().items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        value.is_number() ? metric_text(value.get<double>()) : "-");
  return text;
}

// Nothing for a line that is not whole yet.
std::optional<SampleLine> sample_of(const std::string& line) {
  try {
    const nlohmann::json json = base::parse_json(line, kFileName);
    const base::JsonObject object(json, kFileName);
    return SampleLine{.step = object.integer("step"),
                      .set = object.text_or("set", ""),
                      .prompt = object.text("prompt"),
                      .answer = object.text("answer"),
                      .expected = object.text("expected"),
                      .scores = scores_text(object.object("scores"))};
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

// Those of the last step.
std::vector<SampleLine> last_samples(const std::filesystem::path& path) {
  std::vector<SampleLine> samples;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::optional<SampleLine> sample = sample_of(line);
    if (!sample) continue;
    if (!samples.empty() && samples.back().step != sample->step) samples.clear();
    samples.push_back(std::move(*sample));
  }
  return samples;
}

}  // namespace

void add_answer_samples(const std::filesystem::path& samples, Page& page) {
  const std::vector<SampleLine> last = last_samples(samples);
  if (last.empty()) return;
  page.heading(fmt::format("Answers after step {}", last.front().step));
  page.paragraph("Of each question what was asked, the answer (marked), and what was expected.");
  for (const SampleLine& sample : last) {
    page.paragraph(sample.set.empty() ? sample.scores
                                      : fmt::format("{}: {}", sample.set, sample.scores));
    page.marked_text({{.text = sample.prompt + "\n", .is_marked = false, .is_faint = true},
                      {.text = sample.answer + "\n", .is_marked = true, .is_faint = false},
                      {.text = sample.expected, .is_marked = false, .is_faint = false}});
  }
}

}  // namespace snug::report
