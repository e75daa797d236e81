// The search for the cheapest change of a recipe that makes its job fit.
//
// Changes come in classes, the first class with one that fits wins, and inside it the fastest:
//   0  the same numbers: what is recomputed, what waits on the host (where that is not the device's
//      memory), what is sharded over several devices, and micro-batches split into more
//      accumulation steps
//   1  other element types: bf16 compute, optim=adamw_bf16, optim=adamw_8bit, double_quant
//   2  max_length halved, as little as needed, and never so far that the data lose an answer
//   3  method=lora in place of full
//   4  a smaller adapter: lower lora_r, then fewer target_modules
//   5  rows shorter than anyone wants, so that the least memory is known
// Every class from 1 on is tried together with class 0. A candidate is sized by its layers
// (layer_growth.h), and dropped when its lower bound is over the budget. One that streams has no
// window for copies, unless the recipe gives one: whoever applies it has one chosen that fits
// (choose_streaming.h), which costs a dozen plans, so no candidate pays for it. For the same reason
// layers keep only their input where the recipe leaves that open (choose_recompute.h): more is kept
// once the change is applied. The one that wins
// is planned whole, with the overrides it names, parsed as the command line parses them, so a
// change that is given fits when it is applied; one that turns out not to fit is dropped and the
// search goes on.
//
// Sizes and plans are remembered: asking one search for many budgets costs little more than asking
// once. One thread.
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
  std::optional<formats::Strategy> strategy{};  // of several devices; nothing: the recipe's
};

class ChangeSearch : public Changes {
 public:
  // The arguments must outlive the search. Candidates have rows of the job's data.
  ChangeSearch(const formats::Recipe& recipe, const models::ModelConfig& model,
               const program::Target& target, JobDocuments documents = {});

  std::optional<Change> cheapest(const Budget& budget) override;
  // The smallest of all candidates that were planned whole so far, among them the smallest of every
  // search that found nothing; nothing when none could be planned.
  std::optional<Change> least() const override;

  // What the searches so far have cost: combinations sized by their layers, and those of them that
  // were planned whole, which takes several times as long.
  struct Effort {
    int64_t sized = 0;
    int64_t planned_whole = 0;
  };
  Effort effort() const;

 private:
  struct Stage {
    std::vector<Overrides> variants;  // mildest first, the last one takes the least memory
    std::vector<int64_t> lengths;     // of a row, falling
  };

  // What a combination of overrides takes: by its layers, and whole once that was asked for.
  struct Candidate {
    Overrides overrides;
    Budget bytes;  // the lower bound, or the arenas when it was planned whole
    double seconds_per_token = 0;
    bool is_whole = false;
    bool leaves_open = false;        // memory for copies, or what layers compute again
    bool updates_on_device = false;  // where their place is open
    // The least bytes of the host if updates were on the device instead; nothing: their place is
    // fixed.
    std::optional<int64_t> other_host_bytes{};
  };

  static Change change_of(const Candidate& candidate);
  std::vector<Stage> stages() const;
  std::vector<Overrides> numerics() const;
  // Whether all weights have gradients in f32 next to weights in bf16.
  bool has_wide_gradients() const;
  std::vector<Overrides> smaller_adapters() const;
  // Methods with an adapter that take less than the recipe's, in falling order.
  std::vector<formats::Method> adapter_methods() const;
  std::vector<int64_t> halvings(int64_t from, int64_t least) const;
  bool takes_length(int64_t length) const;

  // The longest rows of a stage at which something fits, the mildest variant that fits there, and
  // the fastest choice of saving and rows with it.
  Candidate* longest(const Stage& stage, const Budget& budget);
  Candidate* fastest(const Overrides& base, const Budget& budget);
  // Rows of a micro-batch that may be tried, falling; an update in the backward pass has but one
  // micro-batch a step.
  std::vector<int64_t> row_choices() const;
  // The savings to try; on several devices also those with strategies that hold less.
  std::vector<Saving> all_savings() const;
  // Whether any choice of saving and rows fits.
  bool can_fit(const Overrides& base, const Budget& budget);
  // The candidate with these overrides if it fits, else null. Where the place of updates is open,
  // it is the host, which takes the least of the device, and the device where the host is too small
  // for that.
  Candidate* fitting(const Overrides& overrides, const Budget& budget);
  // What the host holds of a job with these overrides, where it holds nothing yet.
  void add_streaming(Overrides& overrides) const;
  // `overrides` with a choice of saving and rows; rows x accumulation stays what it was.
  Overrides with_rows(Overrides overrides, const Saving& saving, int64_t rows) const;
  // Throws UserError when the recipe refuses the combination.
  TrainingSpec spec_of(const Overrides& overrides, bool updates_on_device = false) const;
  // Sizes a candidate, or remembers it; null when the recipe refuses the combination.
  Candidate* sized(const Overrides& overrides, bool updates_on_device);
  void plan_whole(Candidate& candidate);
  // Plans whole what takes the least by its lower bound, so that `least` can say it.
  void plan_least();

  const formats::Recipe& recipe_;
  const models::ModelConfig& model_;
  const program::Target& target_;
  const JobDocuments documents_;
  const Rates rates_;
  const std::vector<Saving> savings_;
  // The key is the overrides, and whether updates are on the device.
  std::map<std::pair<std::string, bool>, std::optional<Candidate>> candidates_;
};

}  // namespace snug::plan
