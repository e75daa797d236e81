#include "formats/recipe/report_keys.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/lower_case.h"
#include "base/nearest.h"

namespace snug::formats {
namespace {

const std::vector<std::string_view> kObeyed{kNoReport, kTensorBoard};

void refuse_slip(const Recipe& recipe, const std::string& name) {
  if (const auto nearest = base::nearest_slip(name, kObeyed))
    recipe.fail("report_to", fmt::format("is '{}'; did you mean {}?", name, *nearest));
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
    refuse_slip(recipe, name);
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
