#include "bench/links.h"

#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/recipe_backend.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "bench/link_rates.h"
#include "plan/time/calibration_file.h"
#include "runtime/process/job_ranks.h"

namespace snug::bench {
namespace {

bool is_of_memory(const plan::RateSample& sample) { return sample.unit == plan::Work::host_bytes; }

void print_json(const std::vector<plan::RateSample>& samples) {
  nlohmann::ordered_json document = {{"links", nlohmann::ordered_json::array()}};
  for (const plan::RateSample& sample : samples) {
    const nlohmann::ordered_json entry = {{"operation", sample.name},
                                          {"bytes", sample.work},
                                          {"seconds", sample.seconds},
                                          {"bytes_per_second", sample.work / sample.seconds}};
    if (is_of_memory(sample))
      document["memory"] = entry;
    else
      document["links"].push_back(entry);
  }
  base::print("{}\n", document.dump());
}

void write_samples(std::optional<plan::CalibrationFile> file, int64_t threads,
                   std::vector<plan::RateSample> samples) {
  if (!file)
    return base::say(
        "not written: there is no calibration of this machine with threads={}, as these ranks "
        "have, "
        "that plans would read; make it with 'snug bench calibrate threads={}', then measure "
        "the links again",
        threads, threads);
  plan::replace_samples(file->calibration, std::move(samples));
  base::write_file_atomically(file->path, plan::to_json(file->calibration));
  base::say("written to {}", file->path.string());
}

int measure(const formats::Recipe& recipe, const runtime::Ranks& ranks, bool json) {
  const auto backend = backends::open_backend(recipe, ranks.mesh());
  // Errors in the file are reported before anything is measured.
  std::optional<plan::CalibrationFile> file;
  if (ranks.is_first()) file = plan::find_calibration_file(recipe, *backend);
  const int nodes = static_cast<int>(recipe.node_count());
  base::say("measuring the links between {} ranks; on a busy machine this takes a minute",
            ranks.size());
  std::vector<plan::RateSample> samples =
      link_rates(*backend, *ranks.mesh()->all, {.nodes = nodes});
  // Ranks on GPUs do not share memory.
  if (!backend->device()) samples.push_back(rank_memory_rate(*backend, *ranks.mesh()->all));
  if (!ranks.is_first()) return 0;
  if (json)
    print_json(samples);
  else
    base::print("{}", link_table(samples));
  write_samples(std::move(file), recipe.threads, std::move(samples));
  return 0;
}

}  // namespace

std::string link_table(const std::vector<plan::RateSample>& samples) {
  std::string text;
  std::string_view name;
  for (const plan::RateSample& sample : samples) {
    if (is_of_memory(sample)) {
      text += fmt::format("{}: each moves {:.1f} MB/s while all do\n", sample.name,
                          sample.work / sample.seconds * 1e-6);
      continue;
    }
    if (sample.name != name) {
      name = sample.name;
      text += fmt::format("{}: latency {:.1f} us\n  bytes sent     time, us      MB/s\n", name,
                          sample.seconds * 1e6);
    }
    text += fmt::format("{:12.0f} {:12.1f} {:9.1f}\n", sample.work, sample.seconds * 1e6,
                        sample.work / sample.seconds * 1e-6);
  }
  return text;
}

int links(formats::Recipe recipe, bool json) {
  const runtime::Ranks ranks = runtime::Ranks::join(recipe);
  if (ranks.size() == 1)
    base::throw_user_error(
        "links are between ranks, and this is one process alone; start several with 'mpirun -n 2 "
        "snug bench links', or with devices=2, which starts two on this machine");
  if (!ranks.is_first()) base::leave_console_to_others();
  try {
    ranks.settle(recipe.devices, recipe.nodes, recipe.threads);
    return measure(recipe, ranks, json);
  } catch (const std::exception& error) {
    ranks.end_with(error);
    throw;
  }
}

}  // namespace snug::bench
