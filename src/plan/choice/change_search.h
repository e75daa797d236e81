// The search for the cheapest change of a recipe that makes its job fit.
//
// Changes come in classes. The first class with a change that fits wins, and within it the fastest
// change:
//   0  the same numbers: what is recomputed, what waits on the host (where that is not the device's
//      memory), what is sharded over several devices, and micro-batches split into more
//      accumulation steps
//   1  other element types: bf16 compute, optim=adamw_bf16, optim=adamw_8bit, double_quant
//   2  max_length halved, as little as needed, and never so far that the data lose an answer
//   3  method=lora in place of full
//   4  a smaller adapter: lower lora_r, then fewer target_modules
//   5  rows too short to be useful, so that the least possible memory is known
// Every class from 1 on is combined with class 0. A candidate's size is extrapolated from a few
// layers (layer_growth.h), and it is dropped when its lower bound exceeds the budget. A candidate
// that streams has no window for copies unless the recipe sets one: a window is chosen when the
// change is applied (choose_streaming.h), which takes a dozen plans and would be too slow for every
// candidate. For the same reason, where the recipe leaves recompute open, candidates keep only the
// layers' inputs (choose_recompute.h); more is kept once the change is applied. The winner is
// planned in full, with its overrides parsed as on the command line, so that a suggested change
// fits when it is applied. A winner that turns out not to fit is dropped, and the search goes on.
//
// Sizes and plans are cached: asking one search for many budgets costs little more than asking
// once. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/choice/change.h"
#include "plan/spec/spec.h"
#include "plan/time/rates.h"
#include "program/ir/program.h"

namespace snug::plan {

// How activations are kept for the backward pass, and whether weights and optimizer state stream
// from the host.
struct Saving {
  formats::Recompute recompute = formats::Recompute::none;
  bool offloads = false;
  bool streams = false;
  std::optional<formats::Strategy> strategy{};  // replaces the recipe's strategy; only with several
                                                // devices
};

class ChangeSearch : public Changes {
 public:
  // The arguments must outlive the search. Candidates use the row shape of the job's data.
  ChangeSearch(const formats::Recipe& recipe, const models::ModelConfig& model,
               const program::Target& target, JobDocuments documents = {});

  std::optional<Change> cheapest(const Budget& budget) override;
  // The candidate with the smallest device arena among all that were planned in full so far, which
  // include the smallest candidate of every search that found nothing; nothing when none could be
  // planned.
  std::optional<Change> least() const override;

  // The effort of the searches so far: the number of combinations that were sized, and of those
  // that were planned in full, which takes several times as long.
  struct Effort {
    int64_t sized = 0;
    int64_t planned_whole = 0;
  };
  Effort effort() const;

 private:
  struct Stage {
    std::vector<Overrides> variants;  // mildest first; the last one takes the least memory
    std::vector<int64_t> lengths;     // of a row, descending
  };

  // The memory and time of a combination of overrides: extrapolated from few layers, and exact once
  // it has been planned in full.
  struct Candidate {
    Overrides overrides;
    Budget bytes;  // the lower bound, or the arenas if it was planned in full
    double seconds_per_token = 0;
    bool is_whole = false;
    // Whether a choice is left for later: the window for copies, or what layers recompute.
    bool leaves_open = false;
    bool updates_on_device = false;  // where updates run, if that is open
    // The lower bound of host memory if updates ran on the device instead; nothing if the recipe
    // fixes where they run.
    std::optional<int64_t> other_host_bytes{};
  };

  static Change change_of(const Candidate& candidate);
  std::vector<Stage> stages() const;
  std::vector<Overrides> numerics() const;
  // Whether all weights train in bf16 with gradients in f32.
  bool has_wide_gradients() const;
  std::vector<Overrides> smaller_adapters() const;
  // As the recipe, then with a smaller and smaller batch of answers side by side.
  std::vector<Overrides> fewer_answers() const;
  // These changes with a mixture's experts in 4 bits too; none where they are or cannot be.
  std::vector<Overrides> experts_in_4_bits(const std::vector<Overrides>& others) const;
  // Adapter methods that take less memory than the recipe's method, in descending order.
  std::vector<formats::Method> adapter_methods() const;
  // The tokens of a row that stay whatever its length: the room for prompts, of an objective that
  // makes answers, since those for which there is none are left out. 0 of others.
  int64_t kept_tokens() const;
  // A row of this length.
  Overrides of_length(int64_t length) const;
  // Lengths without what is kept, from `from` down to `least`.
  std::vector<int64_t> halvings(int64_t from, int64_t least) const;
  bool takes_length(int64_t length) const;

  // `longest`: finds the longest rows of a stage at which any candidate fits, and the mildest
  // variant that fits there, and returns the fastest choice for these. `fastest`: the fastest
  // choice of saving and rows for some overrides.
  Candidate* longest(const Stage& stage, const Budget& budget);
  Candidate* fastest(const Overrides& base, const Budget& budget);
  // The numbers of rows to try for a micro-batch, descending. An update in the backward pass allows
  // only one micro-batch per step, so it leaves no choice.
  std::vector<int64_t> row_choices() const;
  // The savings to try; with several devices, also combined with strategies that keep less on each
  // device.
  std::vector<Saving> all_savings() const;
  // Whether any choice of saving and rows fits.
  bool can_fit(const Overrides& base, const Budget& budget);
  // The candidate with these overrides if it fits, else null. Where it is open where updates run,
  // it is the host, which takes the least device memory, or the device if host memory is too small
  // for that.
  Candidate* fitting(const Overrides& overrides, const Budget& budget);
  // Adds overrides that move the weights and state of the job to the host, where the job does not
  // already do so.
  void add_streaming(Overrides& overrides) const;
  // `overrides` with a choice of saving and rows; rows x accumulation is kept.
  Overrides with_rows(Overrides overrides, const Saving& saving, int64_t rows) const;
  // Throws UserError when the recipe refuses the combination.
  TrainingSpec spec_of(const Overrides& overrides, bool updates_on_device = false) const;
  // Sizes a candidate, or takes its size from the cache; null when the recipe refuses the
  // combination.
  Candidate* sized(const Overrides& overrides, bool updates_on_device);
  void plan_whole(Candidate& candidate);
  // Plans the candidate with the smallest lower bound in full, so that `least` can report it.
  void plan_least();

  const formats::Recipe& recipe_;
  const models::ModelConfig& model_;
  const program::Target& target_;
  const JobDocuments documents_;
  const Rates rates_;
  const std::vector<Saving> savings_;
  // The key is the overrides, and whether updates run on the device.
  std::map<std::pair<std::string, bool>, std::optional<Candidate>> candidates_;
};

}  // namespace snug::plan
