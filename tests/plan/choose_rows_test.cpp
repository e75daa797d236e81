// per_device_train_batch_size=auto against every number of rows that a step can be split into.
#include "plan/choice/choose_rows.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "backends/cuda/device/planned_card.h"
#include "formats/recipe/recipe.h"
#include "plan/choice/change.h"
#include "plan/choice/fit.h"
#include "words.h"

namespace snug::plan {
namespace {

using backends::cuda::find_hardware;
using backends::cuda::PlannedCard;

const Words kJob{"model=smollm2-360m", "method=lora", "max_length=2048"};
const std::string kSixRows = "gradient_accumulation_steps=6";

struct Rows {
  int64_t rows = 0;
  int64_t steps = 0;
  PlanDocument document;
  bool fits = false;
};

Rows planned(const formats::Recipe& recipe, const program::Target& target) {
  const models::ModelSource model = models::find_model(recipe.model);
  PlanDocument document = assemble_training({recipe, model, target}).document;
  const bool is_small_enough = fits(recipe, document, target);
  return {recipe.per_device_train_batch_size, recipe.gradient_accumulation_steps,
          std::move(document), is_small_enough};
}

Rows chosen(const Words& words, const program::Target& target) {
  const formats::Recipe recipe =
      formats::load_recipe("", with(words, {"per_device_train_batch_size=auto"}));
  const models::ModelSource model = models::find_model(recipe.model);
  return planned(with_chosen_rows({recipe, model, target}), target);
}

Rows given(const Words& words, int64_t rows, int64_t steps, const program::Target& target) {
  return planned(formats::load_recipe(
                     "", with(words, {"per_device_train_batch_size=" + std::to_string(rows),
                                      "gradient_accumulation_steps=" + std::to_string(steps)})),
                 target);
}

TEST(ChooseRows, TakesTheFastestOfAllThatFit) {
  std::set<int64_t> found;
  for (const int64_t megabytes : {1280, 1500, 40000}) {
    SCOPED_TRACE(megabytes);
    const PlannedCard card(*find_hardware("h100"), megabytes << 20);
    const Rows best = chosen(with(kJob, {kSixRows}), card);
    EXPECT_TRUE(best.fits);
    EXPECT_EQ(best.rows * best.steps, 6);
    for (const int64_t rows : micro_batches(6))
      if (const Rows other = given(kJob, rows, 6 / rows, card); other.fits) {
        EXPECT_LE(best.document.step_seconds, other.document.step_seconds) << rows;
      }
    found.insert(best.rows);
  }
  EXPECT_GT(found.size(), 1U);
}

// Of several ranks the one with the least memory decides for all: how many rows, and how much of
// the device is for copies of weights that lie on the host.
TEST(ChooseRows, AreThoseThatFitEveryRank) {
  const PlannedCard rich(*find_hardware("h100"), int64_t{40000} << 20);
  const formats::Recipe recipe =
      formats::load_recipe("", with(kJob, {kSixRows, "recompute=layer", "offload_params=true",
                                           "per_device_train_batch_size=auto"}));
  const models::ModelSource model = models::find_model(recipe.model);
  for (const int64_t megabytes : {800, 900}) {
    SCOPED_TRACE(megabytes);
    const PlannedCard poor(*find_hardware("h100"), megabytes << 20);
    const int64_t capacity = poor.capacity_bytes(program::Space::device);
    const formats::Recipe agreed = with_chosen_rows({recipe, model, rich, {}, false, capacity});
    const formats::Recipe alone = with_chosen_rows({recipe, model, poor});
    EXPECT_EQ(agreed.per_device_train_batch_size, alone.per_device_train_batch_size);
    const PlanDocument document =
        assemble_training({agreed, model, rich, {}, false, capacity}).document;
    EXPECT_LE(document.device.report.peak_bytes, capacity);
    EXPECT_EQ(document.offload_window_bytes,
              assemble_training({alone, model, poor}).document.offload_window_bytes);
  }
}

TEST(ChooseRows, AreThoseOfTheRecipeWhereItSaysThem) {
  const PlannedCard card(*find_hardware("h100"), 0);
  const formats::Recipe recipe =
      formats::load_recipe("", with(kJob, {kSixRows, "per_device_train_batch_size=3"}));
  const models::ModelSource model = models::find_model(recipe.model);
  const formats::Recipe same = with_chosen_rows({recipe, model, card});
  EXPECT_EQ(same.per_device_train_batch_size, 3);
  EXPECT_EQ(same.gradient_accumulation_steps, 6);
}

// A step with more rows than any micro-batch may have, of which a plan is still made.
TEST(ChooseRows, AreSingleWhereNothingFits) {
  const PlannedCard card(*find_hardware("h100"), int64_t{1} << 30);
  const Rows single = chosen({"model=llama-3.2-1b", "method=lora", "max_length=131072",
                              "gradient_accumulation_steps=16384", "host_memory=1GiB"},
                             card);
  EXPECT_EQ(single.rows, 1);
  EXPECT_EQ(single.steps, 16384);
  EXPECT_FALSE(single.fits);
}

// An update in the backward pass takes all rows of a step at once, and before they are chosen
// nothing is wrong with the recipe.
TEST(ChooseRows, AreAllWhereUpdatesAreInTheBackwardPass) {
  const PlannedCard card(*find_hardware("h100"), 0);
  const Words job{"model=smollm2-135m",     "method=full",    "max_length=512", kSixRows,
                  "optim_in_backward=true", "max_grad_norm=0"};
  const formats::Recipe open =
      formats::load_recipe("", with(job, {"per_device_train_batch_size=auto"}));
  EXPECT_NO_THROW(training_spec(open, models::find_model(open.model).config, card));
  const Rows all = chosen(job, card);
  EXPECT_EQ(all.rows, 6);
  EXPECT_EQ(all.steps, 1);
}

TEST(ChooseRows, IsToldInWords) {
  const formats::Recipe recipe =
      formats::load_recipe("", with(kJob, {kSixRows, "per_device_train_batch_size=auto"}));
  EXPECT_EQ(recipe.per_device_train_batch_size, 0);
  EXPECT_EQ(rows_text(with_rows(recipe, 3)),
            "3 rows in a micro-batch, gradient_accumulation_steps=2");
  EXPECT_EQ(rows_text(with_rows(recipe, 1)),
            "1 row in a micro-batch, gradient_accumulation_steps=6");
}

}  // namespace
}  // namespace snug::plan
