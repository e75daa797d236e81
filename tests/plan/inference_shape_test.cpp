// How many pages a sequence needs, and which programs there are.
#include "plan/job/inference_shape.h"

#include <gtest/gtest.h>

#include "base/token_streams.h"

namespace snug::plan {
namespace {

using base::TokenStream;

// The most pages that a sequence holds at any moment, by following it token by token: a chunk may
// begin at any length.
int64_t followed_pages(const InferenceShape& shape, int64_t window) {
  int64_t most = 0;
  const int64_t capacity = shape.capacity.decoder();
  for (int64_t length = 0; length < capacity; ++length)
    for (int64_t count = 1; count <= std::min(shape.prefill_tokens, capacity - length); ++count) {
      const int64_t first = window == 0 ? 0 : std::max<int64_t>(0, length - window + 1);
      most =
          std::max(most, (length + count - 1) / shape.page_tokens - first / shape.page_tokens + 1);
    }
  return most;
}

TEST(InferenceShape, ASequencesPagesAreThoseThatItsChunksSee) {
  for (const int64_t capacity : {1, 15, 16, 17, 100, 200})
    for (const int64_t chunk : {1, 7, 16, 33})
      for (const int64_t window : {0, 1, 2, 7, 16, 17, 48, 300}) {
        InferenceShape shape{.capacity = capacity, .prefill_tokens = chunk, .page_tokens = 16};
        // Where a window gives back pages, one more than is ever needed may be there: how far it
        // reaches is counted, not where the sequence's pages begin.
        const int64_t pages = pages_of_sequence(shape, {TokenStream::decoder, window});
        const int64_t needed = followed_pages(shape, window);
        EXPECT_GE(pages, needed) << capacity << " " << chunk << " " << window;
        EXPECT_LE(pages, needed + 1) << capacity << " " << chunk << " " << window;
      }
}

TEST(InferenceShape, AnEncodersKeysHaveItsCapacity) {
  const InferenceShape shape{.capacity = {10, 130}, .prefill_tokens = 10, .encoder_tokens = 130};
  EXPECT_EQ(pages_of_sequence(shape, {TokenStream::decoder, 0}), 1);
  EXPECT_EQ(pages_of_sequence(shape, {TokenStream::encoder, 0}), 3);
}

TEST(InferenceShape, SizesOfProgramsAreBelowTheLargest) {
  InferenceShape shape{.sequences = 4, .capacity = 64, .prefill_tokens = 64};
  shape.prefill_sizes = {16, 32, 64, 128};
  shape.decode_sizes = {1, 2, 4};
  EXPECT_EQ(small_prefills(shape), (std::vector<int32_t>{16, 32}));
  EXPECT_EQ(small_decodes(shape), (std::vector<int32_t>{1, 2}));
  shape.all_logits = true;
  EXPECT_TRUE(small_decodes(shape).empty());
}

TEST(InferenceShape, SmallSizesAreFew) {
  InferenceShape shape{.sequences = 6, .capacity = 900, .prefill_tokens = 512};
  add_small_sizes(shape);
  EXPECT_EQ(small_prefills(shape), (std::vector<int32_t>{32, 128}));
  EXPECT_EQ(small_decodes(shape), (std::vector<int32_t>{1, 2, 4}));
}

TEST(InferenceShape, AServerComputesFewRowsInVain) {
  InferenceShape shape{.sequences = 6, .capacity = 4096, .prefill_tokens = 512};
  add_served_sizes(shape);
  EXPECT_EQ(small_decodes(shape), (std::vector<int32_t>{1, 2, 4}));
  EXPECT_EQ(small_prefills(shape), (std::vector<int32_t>{32, 128, 256, 384}));
  shape.prefill_tokens = 128;
  EXPECT_EQ(small_prefills(shape), (std::vector<int32_t>{32}));
}

// A row for each token that a step verifies.
TEST(InferenceShape, GuessesHaveProgramsOfMoreRows) {
  InferenceShape shape{.sequences = 2, .capacity = 64, .prefill_tokens = 64};
  allow_guesses(shape, 4);
  EXPECT_EQ(decode_rows(shape), 10);
  EXPECT_EQ(small_decodes(shape), (std::vector<int32_t>{1, 2, 4, 8}));
  allow_guesses(shape, 0);
  EXPECT_EQ(decode_rows(shape), 2);
  EXPECT_EQ(small_decodes(shape), (std::vector<int32_t>{1}));
}

}  // namespace
}  // namespace snug::plan
