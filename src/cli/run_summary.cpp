#include "cli/run_summary.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "convert/folder/run_record.h"
#include "formats/folder/run_mark.h"
#include "runtime/saving/checkpoint_folders.h"
#include "train/folder_lock.h"
#include "train/run_folder.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using train::RunFolder;

// recipe.yaml has a line for each key.
std::vector<std::pair<std::string, std::string>> recipe_lines(const fs::path& file) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::istringstream text(base::read_text_file(file));
  for (std::string line; std::getline(text, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with('#') || line.starts_with(' ') || colon == std::string::npos) continue;
    lines.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  return lines;
}

std::string value_of(const RunSummary& run, std::string_view key) {
  for (const auto& [name, value] : run.recipe)
    if (name == key) return value;
  return "";
}

// The last line of the log, without its time.
std::string last_line(const fs::path& log) {
  constexpr int64_t kMostBytes = 16 << 10;
  std::ifstream stream(log, std::ios::binary | std::ios::ate);
  if (!stream) return "";
  const auto size = static_cast<int64_t>(stream.tellg());
  stream.seekg(std::max<int64_t>(0, size - kMostBytes));
  std::string last;
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) last = line;
  const size_t space = last.find(' ');
  return space == std::string::npos ? last : last.substr(space + 1);
}

void read_state(const fs::path& folder, RunSummary& run) {
  constexpr std::string_view kStopped = "stopped after step ";
  constexpr std::string_view kError = "snug: error: ";
  if (train::FolderLock::is_taken(folder)) {
    run.state = RunState::running;
  } else if (fs::exists(folder / RunFolder::kMeasured)) {
    run.state = RunState::finished;
  } else if (const std::string words = last_line(folder / RunFolder::kLog);
             words.starts_with(kStopped)) {
    run.state = RunState::stopped;
    run.last_words = words;
  } else if (words.starts_with(kError)) {
    run.state = RunState::failed;
    run.last_words = words.substr(kError.size());
  }
}

std::optional<int64_t> bytes_at(const json& document, const char* part, const char* key) {
  if (!document.is_object() || !document.contains(part) || !document[part].is_object())
    return std::nullopt;
  const json bytes = document[part].value(key, json());
  return bytes.is_number_integer() ? std::optional(bytes.get<int64_t>()) : std::nullopt;
}

void read_figures(const fs::path& folder, RunSummary& run) {
  const json plan = convert::readable_json(folder / RunFolder::kPlan);
  const json measured = convert::readable_json(folder / RunFolder::kMeasured);
  const char* part = plan.is_object() && plan.contains("card") ? "device" : "resident";
  run.planned_bytes = bytes_at(plan, part, "peak_bytes");
  run.measured_bytes = bytes_at(measured, part, "peak_bytes");
  const json speed = measured.is_object() ? measured.value("tokens_per_second", json()) : json();
  if (speed.is_number()) run.tokens_per_second = speed.get<double>();
  const report::MetricsCurve* curve = run.curves.find("tokens_per_second");
  if (run.tokens_per_second || curve == nullptr || curve->values.empty()) return;
  constexpr double kSteps = 20;
  if (const double recent = report::smoothed(curve->values, kSteps).back(); std::isfinite(recent))
    run.tokens_per_second = recent;
}

// max_steps, or what a checkpoint knows of a run of epochs.
int64_t total_steps(const fs::path& folder, const RunSummary& run) {
  const std::string said = value_of(run, "max_steps");
  if (const int64_t steps = std::atoll(said.c_str()); steps > 0) return steps;
  const auto checkpoints = runtime::list_checkpoints(folder).complete;
  if (checkpoints.empty()) return 0;
  const json state = convert::readable_json(checkpoints.back().path / "trainer_state.json");
  const json steps = state.is_object() ? state.value("max_steps", json()) : json();
  return steps.is_number_integer() ? steps.get<int64_t>() : 0;
}

std::string date_of(const fs::path& file) {
  struct stat found = {};
  if (::stat(file.c_str(), &found) != 0) return "";
  struct tm parts = {};
  ::gmtime_r(&found.st_mtim.tv_sec, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &parts)};
}

// The runs in a folder that is none, to a few levels. True where there is any, broken ones too.
bool add_runs_in(const fs::path& folder, int levels, FoundRuns& found);

bool add_run(const fs::path& folder, FoundRuns& found) {
  try {
    found.runs.push_back(summary_of_run(folder));
  } catch (const base::UserError& error) {
    found.broken.emplace_back(folder.string(), error.what());
  }
  return true;
}

bool add_runs_in(const fs::path& folder, int levels, FoundRuns& found) {
  std::vector<fs::path> inner;
  for (const auto& entry : base::list_folder(folder)) {
    std::error_code error;
    if (entry.is_directory(error) && !entry.is_symlink(error) &&
        !entry.path().filename().string().starts_with('.'))
      inner.push_back(entry.path());
  }
  std::ranges::sort(inner);
  bool has_any = false;
  for (const fs::path& each : inner) {
    bool has_runs = false;
    try {
      has_runs = is_run_folder(each) ? add_run(each, found)
                                     : levels > 1 && add_runs_in(each, levels - 1, found);
    } catch (const base::UserError& error) {
      found.broken.emplace_back(each.string(), error.what());
      has_runs = true;
    }
    has_any = has_any || has_runs;
    if (!has_runs) found.others.push_back(each.string());
  }
  return has_any;
}

}  // namespace

std::string_view word_of(RunState state) {
  constexpr std::array<std::string_view, 5> kWords{"running", "finished", "stopped", "failed",
                                                   "killed"};
  return kWords[static_cast<size_t>(state)];
}

bool is_run_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / formats::kRunMark, error) ||
         (fs::is_regular_file(folder / RunFolder::kRecipe, error) &&
          fs::is_regular_file(folder / RunFolder::kMetrics, error));
}

RunSummary summary_of_run(const fs::path& folder) {
  RunSummary run;
  run.name = folder.lexically_normal().string();
  run.recipe = recipe_lines(folder / RunFolder::kRecipe);
  run.model = value_of(run, "model");
  run.method = value_of(run, "method");
  if (run.method.empty())
    base::throw_user_error("{} names no method", (folder / RunFolder::kRecipe).string());
  const fs::path metrics = folder / RunFolder::kMetrics;
  if (base::is_there(metrics)) run.curves = report::read_metrics(metrics);
  run.steps = run.curves.last_step;
  run.total_steps = total_steps(folder, run);
  run.date = date_of(base::is_there(metrics) ? metrics : folder / RunFolder::kRecipe);
  read_figures(folder, run);
  read_state(folder, run);
  return run;
}

FoundRuns find_runs(const std::vector<std::string>& folders) {
  constexpr int kLevels = 4;
  FoundRuns found;
  for (const std::string& name : folders) {
    std::error_code error;
    if (!fs::is_directory(name, error))
      base::throw_user_error(
          "there is no folder {}; give folders of runs (output_dir of snug train), or folders that "
          "hold such",
          name);
    if (is_run_folder(name)) {
      add_run(name, found);
      continue;
    }
    found.are_all_named = false;
    if (!add_runs_in(name, kLevels, found) && found.others.empty()) found.others.push_back(name);
  }
  return found;
}

}  // namespace snug::cli
