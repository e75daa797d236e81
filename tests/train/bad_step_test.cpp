// What a user is told when a step's numbers are no longer finite.
#include <gtest/gtest.h>

#include <cmath>

#include "../base/temporary_folder.h"
#include "train/trainer.h"

namespace snug::train {
namespace {

using testing::contains;

TEST(BadStep, ANormThatIsNotFiniteSkippedTheUpdate) {
  const StepMetrics metrics{.step = 7, .loss = 2.5, .grad_norm = INFINITY, .learning_rate = 2e-4};
  const std::string text = bad_step_message(metrics, false, 4);
  for (const char* part :
       {"step 7", "gradient norm is inf", "were not updated", "2.00e-04", "that of step 4"})
    EXPECT_TRUE(contains(text, part));
}

TEST(BadStep, InTheBackwardPassOnlyTheTensorsConcernedWereSkipped) {
  const StepMetrics metrics{.step = 7, .loss = 2.5, .grad_norm = INFINITY, .learning_rate = 2e-4};
  EXPECT_TRUE(contains(bad_step_message(metrics, true, 4),
                       "the tensors whose own gradient is not finite were not updated"));
}

TEST(BadStep, SkippedStepsInARowNameTheLast) {
  const StepMetrics metrics{.step = 12, .loss = NAN, .grad_norm = NAN, .loss_scale = 64.0};
  const std::string text = skipped_steps_message(metrics, 10, 4);
  for (const char* part : {"step 12", "10 steps in a row", "the loss scale is now 64",
                           "compute_dtype=bf16", "that of step 4"})
    EXPECT_TRUE(contains(text, part));
}

TEST(BadStep, ALossAloneDidNot) {
  const StepMetrics metrics{.step = 7, .loss = NAN, .grad_norm = 0.5, .learning_rate = 2e-4};
  const std::string text = bad_step_message(metrics, false, 0);
  for (const char* part : {"the loss is nan", "were still updated", "no checkpoint was saved"})
    EXPECT_TRUE(contains(text, part));
}

}  // namespace
}  // namespace snug::train
