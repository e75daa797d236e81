#include "cli/merge_after_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/byte_size.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_parser.h"
#include "cli/merge_report.h"
#include "formats/folder/directory_transaction.h"
#include "train/run_folder.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

void add_to_measured(const fs::path& folder, const nlohmann::ordered_json& merge) {
  const fs::path path = folder / train::RunFolder::kMeasured;
  auto measured = base::parse_ordered_json(
      base::read_text_file(path), [&](const std::string& problem, size_t offset) {
        base::throw_user_error("{}: {} at byte {}", path.string(), problem, offset);
      });
  measured["merge"] = merge;
  base::write_file_atomically(path, measured.dump(2) + "\n");
}

}  // namespace

void check_merge_of_run(const formats::Recipe& recipe) { merge_variants_of_run(recipe); }

int merge_after_run(const formats::Recipe& recipe) {
  const MergeJob job = merge_job_of_run(recipe);
  if (base::is_there(job.output())) formats::remove_directory(job.output());
  const MergeText text = merge_text(job);
  const convert::FolderCosts costs = merge_costs(job, text);
  base::say("merges the adapter into {}: writes {} at most, with {} of buffers",
            job.inputs.model.string(), base::readable_byte_size(costs.result_bytes),
            base::readable_byte_size(costs.buffer_bytes));
  const MergeOutcome outcome =
      make_merged(job, text, [](const std::string& line) { base::say("{}", line); });
  for (const std::string& line : drift_lines(job, outcome)) base::say("{}", line);
  base::say("merged model: {}, {} in {:.2f} s", job.output().string(),
            base::readable_byte_size(outcome.report().result_bytes), outcome.report().seconds);
  nlohmann::ordered_json merge = drift_json(job, outcome);
  merge["planned"] = {{"result_bytes", costs.result_bytes}, {"buffer_bytes", costs.buffer_bytes}};
  merge["measured"] = {{"result_bytes", outcome.report().result_bytes},
                       {"seconds", outcome.report().seconds}};
  add_to_measured(recipe.output_dir, merge);
  if (const std::string warning = drift_warning(job, outcome); !warning.empty())
    base::say("{}", warning);
  return outcome.exit_code();
}

}  // namespace snug::cli
