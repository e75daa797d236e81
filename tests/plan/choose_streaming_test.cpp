// How a planned card streams what it does not hold.
#include "plan/choice/choose_streaming.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cuda/device/planned_card.h"
#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"
#include "plan/spec/spec.h"
#include "plan/time/clock.h"
#include "words.h"

namespace snug::plan {
namespace {

using backends::cuda::find_hardware;
using backends::cuda::PlannedCard;

const Words kFull{"model=llama-3.1-8b",         "method=full",         "gradient_dtype=bf16",
                  "max_length=16384",           "max_segments=1",      "recompute=layer",
                  "activation_offloading=true", "offload_params=true", "offload_optimizer=auto",
                  "host_memory=128GiB"};

PlannedTraining planned(const Words& words, const program::Target& target) {
  const formats::Recipe recipe = formats::load_recipe("", words);
  const models::ModelSource model = models::find_model(recipe.model);
  const TrainingInputs inputs{recipe, model, target};
  return assemble_training(inputs);
}

double waiting(const PlanDocument& document) {
  return 1.0 - document.busy_seconds.at("compute") / document.step_seconds;
}

TEST(ChooseStreaming, IsAsFastAsWhatAUserCouldChoose) {
  const PlannedCard card(*find_hardware("rtx-4090"), 0);
  const PlannedTraining chosen = planned(kFull, card);
  const int64_t capacity = card.capacity_bytes(program::Space::device);
  EXPECT_LE(chosen.document.device.report.peak_bytes, capacity);
  for (const char* updates : {"stream", "host"}) {
    Words forced = kFull;
    std::ranges::replace(forced, "offload_optimizer=auto",
                         std::string("offload_optimizer=") + updates);
    for (const char* window : {"100MiB", "500MiB", "2GiB", "6GiB", "12GiB"}) {
      const PlannedTraining other =
          planned(with(forced, {std::string("offload_window=") + window}), card);
      if (other.document.device.report.peak_bytes > capacity) continue;
      EXPECT_LE(chosen.document.step_seconds, 1.01 * other.document.step_seconds)
          << updates << ", " << window;
    }
  }
}

// The row of bench/RESULTS.md: without clipping, updates follow gradients next to the backward
// pass. The seconds that are left are the host's and do not depend on the GPU, so they are what is
// held here; their share of the step is in bench/RESULTS.md.
TEST(ChooseStreaming, HidesUpdatesThatFollowTheirGradients) {
  const PlannedCard card(*find_hardware("rtx-4090"), 0);
  const PlanDocument clipped = planned(kFull, card).document;
  const PlanDocument unclipped = planned(with(kFull, {"max_grad_norm=0"}), card).document;
  EXPECT_LT(waiting(unclipped) * unclipped.step_seconds, 0.6);
  EXPECT_GT(waiting(clipped), waiting(unclipped));
  EXPECT_LT(clipped.device.report.peak_bytes, int64_t{4} << 30);
}

// Updates on the host are faster, and take more of it.
TEST(ChooseStreaming, UpdatesWhereTheHostsMemoryIsEnough) {
  const PlannedCard card(*find_hardware("rtx-4090"), 0);
  const Words job{"model=llama-3.1-8b", "method=full",     "max_length=2048",
                  "recompute=layer",    "max_grad_norm=0", "offload_params=true"};
  // What the process holds next to the arenas, as `snug plan` measures it.
  const auto measure = [](const Job&) { return ProcessBytes{.outside_bytes = 30 << 20}; };
  const auto planned_in = [&](const char* host_memory, const char* updates) {
    const formats::Recipe recipe =
        formats::load_recipe("", with(job, {std::string("host_memory=") + host_memory,
                                            std::string("offload_optimizer=") + updates}));
    const models::ModelSource model = models::find_model(recipe.model);
    const PlannedTraining plan = assemble_training({recipe, model, card}, measure);
    return std::pair(plan.document.offload_optimizer, plan.verdict());
  };
  EXPECT_EQ(planned_in("200GiB", "auto").first, "host");
  EXPECT_FALSE(planned_in("107GiB", "host").second.fits);
  const auto [chosen, verdict] = planned_in("107GiB", "auto");
  EXPECT_EQ(chosen, "stream");
  EXPECT_TRUE(verdict.fits) << verdict.message;
  // What lies outside the arenas counts: without it this would be enough.
  const auto [too_small, refusal] = planned_in("105GiB", "auto");
  EXPECT_FALSE(refusal.fits) << too_small;
  // A refusal proposes it too, with all that it offloads.
  EXPECT_EQ(planned_in("107GiB", "none").second.change,
            "activation_offloading=true offload_optimizer=auto");
}

// Small tensors are updated on the device, next to those that the host updates.
TEST(ChooseStreaming, EveryFormIsAProgramThatHolds) {
  const PlannedCard card(*find_hardware("rtx-4090"), 0);
  const Words small{"model=smollm2-135m", "method=full", "max_length=256",
                    "recompute=layer",    "init=random", "offload_threshold=64KiB"};
  for (const char* updates : {"stream", "host", "none"})
    for (const char* params : {"true", "false"})
      for (const char* norm : {"0", "1"})
        for (const char* window : {"0", "1MiB", "100MiB"}) {
          const Words words = with(
              small,
              {std::string("offload_optimizer=") + updates, std::string("offload_params=") + params,
               std::string("max_grad_norm=") + norm, std::string("offload_window=") + window});
          const formats::Recipe recipe = formats::load_recipe("", words);
          if (recipe.offload_optimizer == formats::OffloadOptimizer::none && !recipe.offload_params)
            continue;
          TrainingSpec spec = training_spec(recipe, models::find_model(recipe.model).config, card);
          spec.verify = true;
          EXPECT_GT(plan_training(spec, card).programs.size(), 0U);
        }
}

TEST(ChooseStreaming, LeavesAWindowThatIsGiven) {
  const PlannedCard card(*find_hardware("rtx-4090"), 0);
  const PlanDocument document = planned(with(kFull, {"offload_window=1GiB"}), card).document;
  EXPECT_EQ(document.offload_window_bytes, int64_t{1} << 30);
}

}  // namespace
}  // namespace snug::plan
