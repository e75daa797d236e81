#include "train/seen_run.h"

#include "base/error.h"
#include "formats/recipe/report_keys.h"
#include "train/run_folder.h"

namespace snug::train {

SeenRun::SeenRun(const plan::PlannedTraining& planned, const formats::Recipe& recipe,
                 const SeenPlace& place)
    : report_(planned, place.folder, place.total_steps) {
  if (formats::reports_to_tensorboard(recipe))
    tensorboard_.emplace(place.folder, formats::to_yaml(recipe),
                         place.done ? std::optional(*place.done + 1) : std::nullopt);
  // A run that goes on and generates no more has no answers of steps that it does again.
  if (planned.spec.generation ||
      (place.done && std::filesystem::exists(place.folder / RunFolder::kSamples)))
    samples_.emplace(place.folder, place.done);
}

void SeenRun::follow(std::string_view line) {
  report_.follow();
  if (tensorboard_) tensorboard_->add(line);
}

void SeenRun::add_samples(int64_t step, std::span<const AnswerSample> samples,
                          std::span<const std::string> names, std::string_view tag) {
  SNUG_CHECK(samples_.has_value(), "the job generates no answers");
  samples_->add(step, samples, names);
  if (tensorboard_) tensorboard_->add_text(step, tag, samples_text(samples, names));
}

}  // namespace snug::train
