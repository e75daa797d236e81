#include "serve/run_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json_parser.h"
#include "report/metrics_curves.h"
#include "serve/api_error.h"

namespace snug::serve {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kMetrics = "metrics.jsonl";
constexpr size_t kMostRuns = 500;
constexpr uintmax_t kMostDocumentBytes = 16 << 20;

int64_t changed_at(const fs::path& file) {
  std::error_code error;
  const auto time = fs::last_write_time(file, error);
  if (error) return 0;
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration_cast<std::chrono::seconds>(system.time_since_epoch()).count();
}

// The names of the runs and when each changed, the last one first.
std::vector<std::pair<int64_t, std::string>> names_in(const fs::path& folder) {
  std::vector<std::pair<int64_t, std::string>> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (fs::exists(entry.path() / kMetrics, error))
      names.emplace_back(changed_at(entry.path() / kMetrics), entry.path().filename().string());
  std::ranges::sort(names, std::greater());
  if (names.size() > kMostRuns) names.resize(kMostRuns);
  return names;
}

ordered_json document(const fs::path& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error || bytes > kMostDocumentBytes) return nullptr;
  return base::parse_ordered_json(
      base::read_text_file(path), [&](const std::string& problem, size_t offset) {
        base::throw_user_error("{}: {}, at byte {}", path.string(), problem, offset);
      });
}

ordered_json text_of(const fs::path& path) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error || bytes > kMostDocumentBytes) return nullptr;
  return base::read_text_file(path);
}

}  // namespace

ordered_json runs_in(const fs::path& folder) {
  ordered_json runs = ordered_json::array();
  for (const auto& [changed, name] : names_in(folder))
    runs.push_back({{"name", name}, {"changed", changed}});
  return runs;
}

ordered_json run_in(const fs::path& folder, const std::string& name) {
  const auto names = names_in(folder);
  if (std::ranges::find(names, name, &std::pair<int64_t, std::string>::second) == names.end())
    throw ApiError(kNotFound, "there is no such run");
  const fs::path run = folder / name;
  ordered_json curves = ordered_json::object();
  for (const report::MetricsCurve& curve : report::read_metrics(run / kMetrics).curves)
    curves[curve.key] = {{"steps", curve.steps}, {"values", curve.values}};
  return {{"name", name},
          {"curves", curves},
          {"plan", document(run / "plan.json")},
          {"measured", document(run / "measured.json")},
          {"recipe", text_of(run / "recipe.yaml")}};
}

}  // namespace snug::serve
