// `snug runs`: lists the runs in folders, and compares those that are named.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/run_comparison.h"
#include "cli/run_summary.h"
#include "cli/verbs.h"

namespace snug::cli {
namespace {

// Where runs are written that name no output_dir.
constexpr const char* kUsualFolder = "runs";
constexpr size_t kNamed = 5;

std::string output_of(Request& request) {
  std::string output;
  request.take_words([&](const std::string& key, const std::string& value) {
    if (key == "output") output = value;
    return key == "output";
  });
  if (!request.overrides.empty())
    base::throw_user_error(
        "'{}' means nothing to snug runs; it takes folders, and output=FILE.html",
        request.overrides.front());
  return output;
}

void print_ends(const FoundRuns& found) {
  for (const RunSummary& run : found.runs)
    if (run.state == RunState::failed) base::print("{} failed: {}\n", run.name, run.last_words);
}

void say_left_out(const FoundRuns& found) {
  for (const auto& [folder, reason] : found.broken)
    base::say("passed over: {}: {}", folder, reason);
  if (found.others.empty()) return;
  std::string names;
  for (size_t i = 0; i < std::min(kNamed, found.others.size()); ++i)
    names += (i == 0 ? "" : ", ") + found.others[i];
  base::say("{} hold{} no run of snug: {}{}",
            found.others.size() == 1 ? "1 folder" : fmt::format("{} folders", found.others.size()),
            found.others.size() == 1 ? "s" : "", names,
            found.others.size() > kNamed ? ", ..." : "");
}

void print_json(const FoundRuns& found) {
  auto runs = nlohmann::ordered_json::array();
  for (const RunSummary& run : found.runs) runs.push_back(json_of(run));
  base::print("{}\n", runs.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

int runs(const Request& request) {
  Request rest = request;
  const std::string output = output_of(rest);
  const FoundRuns found =
      find_runs(rest.folders.empty() ? std::vector<std::string>{kUsualFolder} : rest.folders);
  say_left_out(found);
  if (request.json) {
    print_json(found);
  } else if (found.runs.empty()) {
    base::print("no runs\n");
  } else {
    base::print("{}", table_text(run_table(found.runs)));
    print_ends(found);
    if (found.are_all_named && found.runs.size() > 1)
      base::print("{}", comparison_text(found.runs));
  }
  if (output.empty()) return 0;
  if (found.runs.empty()) base::throw_user_error("there is no run to write to {}", output);
  base::write_file_atomically(output, comparison_page(found.runs));
  base::say("{} compares {}", output,
            found.runs.size() == 1 ? "1 run" : fmt::format("{} runs", found.runs.size()));
  return 0;
}

}  // namespace snug::cli
