// What sums over ranks take: the messages and launches of every piece, where no sample of a sum was
// measured; and how large pieces are on cards.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cuda/device/planned_card.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/job/assembly.h"
#include "program/work/work_list.h"
#include "rate_texts.h"

namespace snug::plan {
namespace {

constexpr double kMessage = 4e-6;
constexpr double kLaunch = 5e-6;

Rates rates_of_links() {
  program::DataSheetRates peaks = kPeaks;
  peaks.interconnect_bytes_per_second = 1e9;
  return Rates::of_data_sheet(peaks);
}

std::string scatter(int piece_elements, int launches) {
  return fmt::format(
      "tensor w (12000) f32\ns (4000) f32 = reduce_scatter(w) {{ranks 3, piece_elements {}}} "
      "channel interconnect launches {}",
      piece_elements, launches);
}

std::string sum(int piece_elements, int launches) {
  return fmt::format(
      "tensor a (8000) f32\ntensor b (1) f32\n"
      "all_reduce() updates (a, b) {{ranks 3, piece_elements {}}} "
      "channel interconnect launches {}",
      piece_elements, launches);
}

TEST(SumPieces, ArePricedOneByOne) {
  const Rates rates = rates_of_links();
  // 2 x 4000 elements are sent, 1000 to each rank at a time.
  EXPECT_NEAR(seconds_of(rates, scatter(1000, 4)), 32e-6 + 4 * 2 * kMessage + 4 * kLaunch, 1e-12);
  EXPECT_NEAR(seconds_of(rates, scatter(0, 1)), 32e-6 + 2 * kMessage + kLaunch, 1e-12);
  // Of 8001 elements slices of 1000, 1000 and 667, each sent to two ranks before and after it is
  // summed.
  EXPECT_NEAR(seconds_of(rates, sum(1000, 9)),
              2 * 2 * 2667 * 4e-9 + 3 * 2 * 2 * kMessage + 9 * kLaunch, 1e-12);
}

TEST(SumPieces, AreInASampleOfTheirSum) {
  RateSample sample = sample_of(scatter(1000, 4), 5e8);
  EXPECT_EQ(sample.name, "reduce_scatter 3 ranks");
  const double seconds = seconds_of(Rates({sample}), scatter(1000, 4));
  EXPECT_DOUBLE_EQ(seconds, sample.seconds);
  EXPECT_DOUBLE_EQ(seconds_of(Rates({sample}), scatter(0, 0)), seconds);
}

// Of a layer's 218 million gradients on 8 cards each rank sums 27 million.
TEST(SumPieces, OfCardsAreWhatIsCollectedForAMessage) {
  const backends::cuda::PlannedCard card(*backends::cuda::find_hardware("h100"), 0);
  const formats::Recipe recipe =
      formats::load_recipe("", {"model=llama-3.1-8b", "max_length=2048", "method=full",
                                "recompute=layer", "devices=8", "strategy=full_shard"});
  const models::ModelSource model = models::find_model(recipe.model);
  const PlannedTraining planned = assemble_training({recipe, model, card});
  size_t most_pieces = 0;
  int64_t most_scratch = 0;
  for (const program::Program& program : planned.job.programs)
    for (const program::Operation& operation : program.operations) {
      const OperationView view{program, operation};
      const std::vector<int64_t> pieces = program::work_of(view, {}).pieces;
      if (program::traits_of(operation).category != program::Category::collective || pieces.empty())
        continue;
      most_pieces = std::max(most_pieces, pieces.size());
      EXPECT_GE(operation.launches, static_cast<int32_t>(pieces.size()));
      ASSERT_NE(operation.workspace, program::kNone);
      const int64_t scratch = program.tensor(operation.workspace).bytes();
      most_scratch = std::max(most_scratch, scratch);
      EXPECT_GE(scratch, 2 * 8 * pieces.front() * 4);
      const int rounds = operation.kind() == program::Kind::all_reduce ? 2 : 1;
      EXPECT_EQ(program::rate_key(view, {}).messages,
                7.0 * rounds * static_cast<double>(pieces.size()));
    }
  EXPECT_EQ(most_scratch, int64_t{50} << 20);
  EXPECT_EQ(most_pieces, 81U);  // of the embedding and of the head
}

}  // namespace
}  // namespace snug::plan
