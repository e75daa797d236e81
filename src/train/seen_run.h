// What people see of a run while it goes on: its page, TensorBoard's events, and samples of
// answers. Of the first rank; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/recipe/recipe.h"
#include "plan/document/measured.h"
#include "plan/job/assembly.h"
#include "train/answer_sample.h"
#include "train/live_report.h"
#include "train/samples_log.h"
#include "train/tensorboard_log.h"

namespace snug::train {

// Where it is written.
struct SeenPlace {
  const std::filesystem::path& folder;
  int64_t total_steps = 0;
  // Of a run that goes on, the last step that it has done: what later ones left is dropped.
  std::optional<int64_t> done{};
};

class SeenRun {
 public:
  // The plan and the folder must outlive the object. Throws UserError where a file cannot be read
  // or written.
  SeenRun(const plan::PlannedTraining& planned, const formats::Recipe& recipe,
          const SeenPlace& place);

  // A line of metrics was written.
  void follow(std::string_view line);
  // `names`: of the samples' scores; `tag`: what TensorBoard calls them. Requires a plan of
  // programs that generate.
  void add_samples(int64_t step, std::span<const AnswerSample> samples,
                   std::span<const std::string> names, std::string_view tag);
  // The run ended before its last step.
  void stop(const std::string& state) { report_.stop(state); }
  void finish(const plan::Measured& measured) { report_.finish(measured); }

 private:
  LiveReport report_;
  std::optional<TensorBoardLog> tensorboard_;
  std::optional<SamplesLog> samples_;
};

}  // namespace snug::train
