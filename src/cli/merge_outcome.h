// Makes the merged folders of a job, measures how far each is from what was trained, and keeps the
// one that is nearest. One model at a time is in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/merge_job.h"
#include "cli/merge_text.h"
#include "convert/folder/output_folder.h"
#include "generate/drift.h"

namespace snug::cli {

// The exit code of a command that finished, and whose result is not to be used as it is.
inline constexpr int kNotAsItIs = 4;

struct MergedVariant {
  MergedInto base = MergedInto::model;
  convert::FolderReport report{};
  std::optional<generate::Drift> drift{};  // nothing: it was not measured
};

struct MergeOutcome {
  std::vector<MergedVariant> variants;  // that were made
  size_t kept = 0;                      // the one that the folder holds
  std::string kept_because{};           // empty where there was no choice
  std::string text{};                   // on which they were compared
  std::string not_measured{};           // why; empty: it was
  std::string compute_dtype{};
  generate::DriftCosts costs{};
  int64_t arena_bytes = 0;  // the most that a model took
  double max_drift = 0;

  const MergedVariant& result() const { return variants[kept]; }
  bool exceeds_drift() const;
  int exit_code() const { return exceeds_drift() ? kNotAsItIs : 0; }
  // What making all folders took.
  convert::FolderReport report() const;
};

// What all folders of the job need, and the model that runs for the comparison, of which only one
// is in memory at a time.
convert::FolderCosts merge_costs(const MergeJob& job, const MergeText& text);

using SayLine = std::function<void(const std::string&)>;

// `say` is told, before it is taken, what the comparison takes. The folder appears whole or not at
// all, under a name that must be free. Throws UserError as convert::FolderMerger does.
MergeOutcome make_merged(const MergeJob& job, const MergeText& text, const SayLine& say);

}  // namespace snug::cli
