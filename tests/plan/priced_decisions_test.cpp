// Names of rate keys follow what was decided, and calibrations that have only the names of older
// builds go on pricing what they were measured for.
#include <gtest/gtest.h>

#include "../source_folder.h"
#include "backends/cuda/device/planned_card.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/job/assembly.h"
#include "rate_texts.h"

namespace snug::plan {
namespace {

// A product with one of low rank added, in two.
std::string two_products(const char* low_algorithm) {
  return fmt::format(
      "tensor x (64, 32) bf16\ntensor w (16, 32) bf16\ntensor h (64, 8) bf16\n"
      "tensor b (16, 8) bf16\ny (64, 16) bf16 = matmul(x, w, h, b) {{transpose_b, augmented, "
      "low_transpose_b, products 2 low_algorithm {}, algorithm library}}",
      low_algorithm);
}

TEST(PricedDecisions, NameASecondProductOfOtherMake) {
  const RateKey key = key_of(two_products("timed"));
  const std::string main = without_decisions(key.form).name();
  EXPECT_EQ(main, "matmul n t bf16 bf16 bf16 bf16 > bf16");
  EXPECT_EQ(key.form.name(), main + " products 2");
  EXPECT_EQ(key_of(two_products("few_rows")).form.name(), main + " products 2 low by few_rows");
  const std::string loss =
      "tensor h (100, 8) bf16\ntensor w (50, 8) bf16\ntensor t (100) i32\ntensor i (1) f32\n"
      "l (100) f32, s (1) f32, dh (100, 8) bf16, dw (50, 8) f32 = "
      "linear_cross_entropy_train(h, w, t, i) {algorithm halved_chunks chunk_rows 64, "
      "weight_gradient, products logits_algorithm wide dhidden_algorithm wide dweight_algorithm ";
  const program::RateForm wide = key_of(loss + "wide}").form;
  EXPECT_EQ(wide, without_decisions(wide));
  EXPECT_EQ(key_of(loss + "library}").form.name(), wide.name() + " dweight by library");
}

TEST(PricedDecisions, AreThoseOfTheMainProductWhereNoOthersWereMeasured) {
  const std::string text = two_products("few_rows");
  const double work = key_of(text).work;
  RateSample older = sample_of(text, 1e9);
  older.name = without_decisions(key_of(text).form).name();
  EXPECT_DOUBLE_EQ(seconds_of(Rates({older}), text), work / 1e9);
  EXPECT_DOUBLE_EQ(seconds_of(Rates({older, sample_of(text, 2e9)}), text), work / 2e9);
  EXPECT_DOUBLE_EQ(seconds_of(Rates({older, sample_of(text, 2e9)}), two_products("timed")),
                   work / 1e9);
}

// Files that were measured before are read as they are: each operation that they have samples of is
// priced by those.
TEST(PricedDecisions, CommittedCalibrationsStillPrice) {
  for (const auto& [row, file] :
       {std::pair{"h100", "NVIDIA-H100-80GB-HBM3"}, std::pair{"h200", "NVIDIA-H200"}}) {
    const backends::cuda::PlannedCard card(*backends::cuda::find_hardware(row), 0);
    const formats::Recipe recipe =
        formats::load_recipe("", {"model=llama-3.1-8b", "max_length=2048", "method=lora",
                                  fmt::format("calibration={}/bench/results/calibration-{}.json",
                                              test::source_folder(), file)});
    const models::ModelSource model = models::find_model(recipe.model);
    const PlannedTraining planned = assemble_training({recipe, model, card});
    EXPECT_EQ(planned.rates.basis(), Basis::calibrated);
    const Rates& rates = planned.rates;
    int by_older_names = 0;
    for (const program::Program& program : planned.job.programs)
      for (const program::Operation& operation : program.operations)
        for (const program::PricedShare& share : program::priced_shares({program, operation}, {})) {
          RateKey older = share.key;
          older.form = without_decisions(older.form);
          EXPECT_EQ(rates.seconds(share.key, share.cost), rates.seconds(older, share.cost));
          if (share.key.form != older.form) ++by_older_names;
        }
    EXPECT_GT(by_older_names, 0) << "products of adapters";
  }
}

}  // namespace
}  // namespace snug::plan
