#include "formats/recipe/report_keys.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/lower_case.h"
#include "base/nearest.h"

namespace snug::formats {
namespace {

const std::vector<std::string_view> kObeyed{kNoReport, kTensorBoard};
// What transformers, ms-swift and LitGPT report to besides, where Snug sends nothing.
const std::vector<std::string_view> kNoted{
    "all",     "azure_ml", "clearml", "codecarbon", "comet",   "comet_ml", "csv",  "dagshub",
    "dvclive", "flyte",    "mlflow",  "neptune",    "swanlab", "trackio",  "wandb"};

[[noreturn]] void refuse_unknown(const Recipe& recipe, const std::string& name) {
  std::vector<std::string_view> known = kObeyed;
  known.insert(known.end(), kNoted.begin(), kNoted.end());
  const auto nearest = base::nearest_name(name, known);
  recipe.fail("report_to",
              nearest ? fmt::format("is '{}'; did you mean {}?", name, *nearest)
                      : fmt::format("is '{}'; expected {}, or the name of a service that other "
                                    "tools report to: {}",
                                    name, fmt::join(kObeyed, ", "), fmt::join(kNoted, ", ")));
}

}  // namespace

bool reports_to_tensorboard(const Recipe& recipe) {
  return std::ranges::count(recipe.report_to, kTensorBoard) > 0;
}

void settle_report_to(Recipe& recipe) {
  std::vector<std::string> others;
  bool has_tensorboard = false;
  for (const std::string& said : recipe.report_to) {
    const std::string name = base::lower_case(said);
    has_tensorboard = has_tensorboard || name == kTensorBoard;
    if (std::ranges::count(kObeyed, name) > 0) continue;
    if (std::ranges::count(kNoted, name) == 0) refuse_unknown(recipe, name);
    others.push_back(said);
  }
  recipe.report_to = {std::string(has_tensorboard ? kTensorBoard : kNoReport)};
  if (others.empty()) return;
  const auto where = recipe.given.find("report_to");
  recipe.notes.push_back(fmt::format(
      "{}'report_to' is {}: nothing is sent there. The run's folder has every step in "
      "metrics.jsonl "
      "and its curves in report.html, and snug runs compares runs{}",
      where == recipe.given.end() ? "" : base::to_string(where->second), fmt::join(others, ", "),
      has_tensorboard ? ""
                      : "; report_to: tensorboard writes event files, which such services import"));
}

}  // namespace snug::formats
