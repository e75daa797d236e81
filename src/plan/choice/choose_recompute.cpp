// Stages: plan the job that recomputes nothing, and take it if it fits the device; the host needs
// no check, since no other choice takes less of it. Otherwise, size each form of the job with one
// mode in all layers, from jobs of few layers; list the mixtures of modes by their predicted time;
// plan the fastest whose predicted bytes fit; correct the predictions of its form by the planned
// bytes; stop when no faster mixture is left that should fit.
#include "plan/choice/choose_recompute.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "plan/job/layer_growth.h"
#include "plan/job/training_programs.h"
#include "plan/time/clock.h"

namespace snug::plan {
namespace {

using passes::keeps_checkpoints;
using passes::kRecomputeModes;
using passes::RecomputeMode;
using passes::RecomputeModes;
using program::Space;

constexpr int kMaxPlans = 12;

using Counts = std::array<int64_t, kRecomputeModes.size()>;  // layers with each mode

// A mixture of modes, with its predicted bytes and seconds.
struct Candidate {
  size_t form = 0;
  Counts counts{};
  double bytes = 0;
  double seconds = 0;
  bool is_tried = false;
};

// The job with one mode in all layers, sized by layer_growth.h.
struct Uniform {
  double bytes = 0;
  double seconds = 0;
};
using UniformJobs = std::array<Uniform, kRecomputeModes.size()>;

struct Form {
  const TrainingSpec& spec;
  UniformJobs uniform{};
  // Bytes of the last plan minus its predicted bytes.
  double excess = 0;
  int plans = 0;
};

// The mixtures to consider, as counts of layers for each mode: two modes, and a third in at most
// one layer.
std::vector<Counts> mixtures(int64_t layers) {
  std::set<Counts> all;
  for (size_t first = 0; first < kRecomputeModes.size(); ++first)
    for (size_t second = 0; second < kRecomputeModes.size(); ++second)
      for (size_t single = 0; single < kRecomputeModes.size(); ++single)
        for (int64_t count = 0; count < layers; ++count) {
          Counts counts{};
          counts[first] += count;
          counts[second] += layers - 1 - count;
          counts[single] += 1;
          all.insert(counts);
        }
  return {all.begin(), all.end()};
}

int64_t device_arena_bytes(const Job& job) {
  return job.layout.spaces[static_cast<size_t>(Space::device)].arena_bytes;
}

void lay_out(RecomputeChoice& choice, const ChoiceInputs& inputs) {
  lay_out(choice.job, inputs.target);
  choice.device_bytes = device_arena_bytes(choice.job);
}

bool has_checkpoints(const Counts& counts) {
  for (size_t mode = 0; mode < kRecomputeModes.size(); ++mode)
    if (counts[mode] > 0 && keeps_checkpoints(kRecomputeModes[mode])) return true;
  return false;
}

// The last layers get the modes that keep the most.
RecomputeModes modes_of(const Counts& counts) {
  std::vector<RecomputeMode> layers;
  for (size_t mode = kRecomputeModes.size(); mode-- > 0;)
    layers.insert(layers.end(), static_cast<size_t>(counts[mode]), kRecomputeModes[mode]);
  return RecomputeModes(std::move(layers));
}

TrainingSpec with_modes(TrainingSpec spec, const RecomputeModes& modes) {
  spec.recompute = modes;
  return spec;
}

// Lays out the job if it may fit, and returns whether it does.
bool fits(Job& job, const ChoiceInputs& inputs) {
  const auto bytes_in = [&](Space space) {
    return job.layout.spaces[static_cast<size_t>(space)].arena_bytes;
  };
  const auto fits_device = [&] {
    return inputs.device_bytes == 0 || bytes_in(Space::device) <= inputs.device_bytes;
  };
  if (!fits_device()) return false;
  lay_out(job, inputs.target);
  if (!fits_device()) return false;
  return !inputs.host_budget ||
         bytes_in(Space::host) + bytes_in(Space::pinned_host) <= inputs.host_budget(job);
}

class Search {
 public:
  Search(std::span<const TrainingSpec> forms, const ChoiceInputs& inputs) : inputs_(inputs) {
    for (const TrainingSpec& spec : forms) {
      forms_.push_back({spec});
      add_form(forms_.size() - 1);
    }
    std::ranges::stable_sort(candidates_, {}, &Candidate::seconds);
  }

  RecomputeChoice fastest() {
    std::optional<RecomputeChoice> best;
    double limit_seconds = std::numeric_limits<double>::infinity();
    while (Candidate* candidate = next(limit_seconds)) {
      Form& form = forms_[candidate->form];
      RecomputeChoice planned =
          planned_choice(with_modes(form.spec, modes_of(candidate->counts)), inputs_);
      candidate->is_tried = true;
      ++form.plans;
      form.excess = static_cast<double>(planned.device_bytes) - candidate->bytes;
      if (!planned.fits || (best && !is_better(planned, *best))) continue;
      limit_seconds = planned.step_seconds;
      best = std::move(planned);
    }
    return best ? std::move(*best) : least();
  }

 private:
  // For modes without checkpoints all forms are the same job, so the sizes of the first form are
  // used.
  void add_form(size_t index) {
    Form& form = forms_[index];
    for (size_t i = 0; i < kRecomputeModes.size(); ++i)
      form.uniform[i] = index > 0 && !keeps_checkpoints(kRecomputeModes[i])
                            ? forms_.front().uniform[i]
                            : uniform_job(form.spec, kRecomputeModes[i]);
    for (const Counts& counts : mixtures(form.spec.model.num_layers))
      if (index == 0 || has_checkpoints(counts)) candidates_.push_back(predicted(index, counts));
  }

  Uniform uniform_job(const TrainingSpec& spec, RecomputeMode mode) const {
    const JobSize size =
        size_by_layers(with_modes(spec, mode), inputs_.target, inputs_.rates, inputs_.expected);
    const int64_t bytes = size.lower_bound_bytes[static_cast<size_t>(Space::device)];
    return {static_cast<double>(bytes), size.step_seconds};
  }

  Candidate predicted(size_t form, const Counts& counts) const {
    Candidate candidate{.form = form, .counts = counts};
    const auto layers = static_cast<double>(forms_[form].spec.model.num_layers);
    for (size_t i = 0; i < counts.size(); ++i) {
      const double share = static_cast<double>(counts[i]) / layers;
      candidate.bytes += share * forms_[form].uniform[i].bytes;
      candidate.seconds += share * forms_[form].uniform[i].seconds;
    }
    return candidate;
  }

  // The fastest mixture that should fit, with its predicted bytes corrected by the excess of the
  // last plan of its form.
  Candidate* next(double limit_seconds) {
    for (Candidate& candidate : candidates_) {
      if (candidate.seconds >= limit_seconds) return nullptr;
      const Form& form = forms_[candidate.form];
      if (!candidate.is_tried && form.plans < kMaxPlans && has_room(candidate.bytes + form.excess))
        return &candidate;
    }
    return nullptr;
  }

  bool has_room(double bytes) const {
    return inputs_.device_bytes == 0 || bytes <= static_cast<double>(inputs_.device_bytes);
  }

  RecomputeChoice least() const {
    std::optional<RecomputeChoice> least;
    for (const Form& form : forms_) {
      RecomputeChoice planned =
          planned_choice(with_modes(form.spec, RecomputeMode::layer), inputs_);
      lay_out(planned, inputs_);
      if (!least || is_better(planned, *least)) least = std::move(planned);
    }
    return std::move(*least);
  }

  const ChoiceInputs& inputs_;
  std::vector<Form> forms_;
  std::vector<Candidate> candidates_;  // fastest first
};

}  // namespace

bool is_better(const RecomputeChoice& a, const RecomputeChoice& b) {
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.step_seconds < b.step_seconds : a.device_bytes < b.device_bytes;
}

RecomputeChoice planned_choice(const TrainingSpec& spec, const ChoiceInputs& inputs) {
  Job job = training_programs(spec, inputs.target);
  const double seconds = step_seconds(job, spec.accumulation, inputs.rates, inputs.expected);
  const bool is_small_enough = fits(job, inputs);
  const int64_t bytes = device_arena_bytes(job);
  return {spec, std::move(job), bytes, seconds, is_small_enough, 0};
}

RecomputeChoice choose_recompute(std::span<const TrainingSpec> forms, const ChoiceInputs& inputs) {
  RecomputeChoice everything =
      planned_choice(with_modes(forms.front(), RecomputeMode::keep_all), inputs);
  lay_out(everything, inputs);
  const int64_t nothing_again_bytes = everything.device_bytes;
  const bool has_room = inputs.device_bytes == 0 || nothing_again_bytes <= inputs.device_bytes;
  RecomputeChoice best = has_room ? std::move(everything) : Search(forms, inputs).fastest();
  best.nothing_again_bytes = nothing_again_bytes;
  return best;
}

}  // namespace snug::plan
