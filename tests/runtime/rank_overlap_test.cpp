// Whether gathers really go on next to work: over links that deliver late, a pass with prefetching
// takes hardly longer than over links that do not. Wall time, on a machine that does nothing else;
// in "make test-long".
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "program/kinds/kind.h"
#include "rank_runs.h"
#include "runtime/saving/adapter.h"
#include "traced_batch.h"

namespace snug::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using passes::Prefetch;
using program::ProgramName;
using Seconds = std::chrono::duration<double>;

constexpr int kOverlapLayers = 12;
constexpr int kPasses = 4;  // over the same links
constexpr int kTurns = 5;

// An adapter on frozen weights, and the first of two micro-batches: nothing travels but weights.
plan::TrainingSpec frozen_weights(Prefetch prefetch) {
  testing::TinyOptions options;
  options.method = formats::Method::lora;
  options.model.hidden_size = 256;
  options.model.num_layers = kOverlapLayers;
  options.model.num_heads = 4;
  options.model.num_kv_heads = 2;
  options.model.head_dim = 64;
  options.model.intermediate_size = 704;
  options.model.vocab_size = 1024;
  options.model.max_position = 512;
  options.ranks = testing::full_shard(2);
  options.ranks.threshold_elements = 10'000;
  options.init_seed = 1;
  options.ranks.prefetch = prefetch;
  plan::TrainingSpec spec = testing::spec_of(options);
  spec.row_tokens = 512;
  spec.accumulation = 2;
  return spec;
}

// Seconds of the forward work of each layer; awaits do not count.
class LayerTimes : public Executor::Observer {
 public:
  void before(const program::Program& /*program*/, size_t /*operation*/) override {
    begin_ = Clock::now();
  }
  void after(const program::Program& program, size_t index) override {
    const program::Operation& operation = program.operations[index];
    if (operation.phase != program::Phase::forward || operation.layer < 0) return;
    if (program::traits_of(operation).category == program::Category::collective ||
        program::ends_copy(operation))
      return;
    seconds_[static_cast<size_t>(operation.layer)] += Seconds(Clock::now() - begin_).count();
  }
  double shortest() const { return *std::ranges::min_element(seconds_); }

 private:
  Clock::time_point begin_;
  std::vector<double> seconds_ = std::vector<double>(kOverlapLayers);
};

struct Pass {
  double seconds = std::numeric_limits<double>::max();        // the least of all
  double layer_seconds = std::numeric_limits<double>::max();  // of the forward work of one layer
  int gathers = 0;
};

int gathers_of(const program::Program& program) {
  int gathers = 0;
  for (const program::Operation& operation : program.operations) {
    if (program::traits_of(operation).category != program::Category::collective) continue;
    EXPECT_EQ(operation.kind(), program::Kind::all_gather);
    ++gathers;
  }
  return gathers;
}

// Runs some passes over links that deliver each message so late, and notes what rank 0 saw.
void run_passes(Prefetch prefetch, Seconds delay, Pass& pass) {
  const plan::TrainingSpec spec = frozen_weights(prefetch);
  const auto errors =
      comm::errors_of_ranks(2, {.delay_per_message = delay}, [&](comm::Communicator& ranks) {
        const comm::Mesh mesh{.all = &ranks, .shards = &ranks};
        const auto backend = backends::open_backend("cpu", {.threads = 1, .mesh = &mesh});
        const plan::Job job = plan::plan_training(spec, *backend);
        Executor executor(job, *backend, &mesh);
        random_weights(spec.model, executor);
        initialise_adapter(executor);
        testing::fill_batch(*job.find(ProgramName::micro_first), executor);
        for (int i = 0; i < kPasses; ++i) {
          ranks.barrier();
          const auto begin = Clock::now();
          executor.run(ProgramName::micro_first);
          const double seconds = Seconds(Clock::now() - begin).count();
          if (ranks.rank() == 0) pass.seconds = std::min(pass.seconds, seconds);
        }
        LayerTimes times;
        executor.set_observer(&times);
        executor.run(ProgramName::micro_first);
        if (ranks.rank() != 0) return;
        pass.layer_seconds = std::min(pass.layer_seconds, times.shortest());
        pass.gathers = gathers_of(*job.find(ProgramName::micro_first));
      });
  testing::expect_no_errors(errors);
}

// No layer works before the embedding and the first layer are needed, so their gathers are seen
// whatever is done; those of all other layers, in both directions, and of the head are not.
TEST(RankOverlap, HidesGathersThatAreShorterThanALayersWork) {
  Pass none, pre, none_late, pre_late;
  run_passes(Prefetch::none, Seconds(0), none);
  run_passes(Prefetch::pre, Seconds(0), pre);
  const Seconds delay(std::min(none.layer_seconds, pre.layer_seconds) / 2);
  // In turns, so that what else the machine does touches all of them.
  for (int turn = 0; turn < kTurns; ++turn) {
    run_passes(Prefetch::none, delay, none_late);
    run_passes(Prefetch::pre, delay, pre_late);
    run_passes(Prefetch::none, Seconds(0), none);
    run_passes(Prefetch::pre, Seconds(0), pre);
  }
  ASSERT_GE(pre.gathers, 2 * kOverlapLayers);
  const double none_cost = none_late.seconds - none.seconds;
  const double pre_cost = pre_late.seconds - pre.seconds;
  constexpr int kSeen = 2;
  const double hidden =
      1 - (pre_cost - kSeen * delay.count()) / ((pre.gathers - kSeen) * delay.count());
  const std::string figures = fmt::format(
      "{} gathers of {:.2f} ms in a pass of {:.1f} ms, {:.2f} ms a layer: they cost {:.1f} ms "
      "without prefetching, {:.1f} ms with it; {:.1f} % hidden",
      pre.gathers, 1e3 * delay.count(), 1e3 * pre.seconds, 1e3 * pre.layer_seconds, 1e3 * none_cost,
      1e3 * pre_cost, 100 * hidden);
  RecordProperty("figures", figures);
  fmt::print("{}\n", figures);
  EXPECT_GE(none_cost, 0.9 * none.gathers * delay.count()) << "the links are not late: " << figures;
  EXPECT_GE(hidden, 0.8) << figures;
}

}  // namespace
}  // namespace snug::runtime
