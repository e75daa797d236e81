// samples.jsonl of a run's folder: some of the answers that each evaluation generated, for people
// to look at. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "formats/folder/json_lines.h"
#include "train/answer_sample.h"

namespace snug::train {

class SamplesLog {
 public:
  // `step`: of a run that goes on, the last one that it has done; lines of later steps are dropped.
  // Throws UserError where the file cannot be read or written.
  SamplesLog(const std::filesystem::path& folder, std::optional<int64_t> step);

  // Adds a line for each sample; `names`: of its scores. Where the file cannot be written, that is
  // said once, and nothing is thrown: the run is worth more than its samples.
  void add(int64_t step, std::span<const AnswerSample> samples, std::span<const std::string> names);

 private:
  formats::JsonLines lines_;
  bool has_failed_ = false;
};

// The samples as a text for people.
std::string samples_text(std::span<const AnswerSample> samples, std::span<const std::string> names);

}  // namespace snug::train
