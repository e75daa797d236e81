// What own kernels of a card take by their instructions.
#include "plan/time/kernel_instructions.h"

#include <gtest/gtest.h>

#include <string_view>

#include "rate_texts.h"

namespace snug::plan {
namespace {

constexpr double kInstructionsPerSecond = 0.47 * 67e12 / 2 * 1.75 / 1.98;

// The kernels that cap scores or add a bias take more instructions for as many products.
TEST(Rates, OfADataSheetPriceAttentionThatAdjustsScores) {
  const std::string capped = ", kernel tensor_cores, softcap 50";
  const std::string biased = ", kernel tensor_cores, alibi_scale 1";
  for (const std::string& form : {capped, biased}) {
    EXPECT_NEAR(planned_rate(attention(128, form.c_str()), 2048), 0.215 * 989 * 23.8 / 37.9, 1e-6);
    EXPECT_NEAR(planned_rate(attention_grad(64, form.c_str()), 2048),
                0.148 * 989 * (24.1 + 35.6) / (38.9 + 52.6), 1e-6);
    const RateKey key = key_of(attention(128, form.c_str()));
    EXPECT_EQ(key.form.name(),
              key_of(attention(128, ", kernel tensor_cores")).form.name() + " adjusted");
  }
}

// Without a sample of its own it is as much slower than the plain form that was measured on a card;
// of a processor nothing is known of that.
TEST(Rates, AttentionThatAdjustsScoresFollowsThePlainForm) {
  const std::string capped = attention(128, ", kernel tensor_cores, softcap 50");
  const RateSample plain = sample_of(attention(128, ", kernel tensor_cores"), 400e12);
  const double work = key_of(capped).work;
  EXPECT_NEAR(seconds_of(Rates({plain}, kPeaks), capped) * 400e12 / work, 37.9 / 23.8, 1e-9);
  const RateSample own = sample_of(capped, 100e12);
  EXPECT_NEAR(seconds_of(Rates({plain, own}, kPeaks), capped) * 100e12 / work, 1, 1e-9);
  const std::string on_processor = attention(128, ", softcap 50");
  const Rates processor({sample_of(attention(128, ""), 1e12)});
  EXPECT_NEAR(seconds_of(processor, on_processor) * 1e12 / key_of(on_processor).work, 1, 1e-9);
}

// A step of 2^24 weights in bf16.
std::string adamw(const char* kind) {
  const bool coded = std::string_view(kind) == "adamw_8bit";
  return fmt::format(
      "tensor w (4096, 4096) bf16\ntensor g (4096, 4096) bf16\ntensor f (1) f32\n"
      "tensor lr (1) f32\ntensor t (1) i32\ntensor m (4096, 4096) {0}\ntensor v (4096, 4096) {0}\n"
      "tensor a (65536) f32\ntensor b (65536) f32\n{1}(g, f, lr, t) updates (w, m, v{2}) {3}",
      coded ? "u8" : "bf16", coded ? "adamw_8bit" : "adamw", coded ? ", a, b" : "",
      coded ? "" : "{stochastic}");
}

// Of a kernel whose instructions outlast its bytes they are the time.
TEST(Rates, OfADataSheetPriceAnOptimizersInstructions) {
  const Rates card = Rates::of_data_sheet(kPeaks);
  const auto seconds = [&](const Rates& rates, const char* kind) {
    return seconds_of(rates, adamw(kind)) - rates.roofline().launch_seconds;
  };
  const double weights = 4096.0 * 4096.0;
  EXPECT_NEAR(seconds(card, "adamw_8bit") / (weights * 162.1 / kInstructionsPerSecond), 1, 1e-9);
  EXPECT_NEAR(seconds(card, "adamw") / (weights * 115.6 / kInstructionsPerSecond), 1, 1e-9);
  // Of slower memory their bytes outlast them, and a processor's kernels are others. The gradient
  // is read; the weight and both moments are read and written.
  const double bytes = weights * 2 * (1 + 2 * 3);
  program::DataSheetRates slow = kPeaks;
  slow.bytes_per_second = 1e11;
  EXPECT_NEAR(seconds(Rates::of_data_sheet(slow), "adamw") / (bytes / 0.8e11), 1, 1e-3);
  const Rates processor = Rates::assumed(1);
  EXPECT_NEAR(seconds(processor, "adamw") / (bytes / processor.roofline().bytes_per_second), 1,
              1e-3);
}

// Where a block reads keys and values once for many heads, what it does with them outlasts reading.
TEST(Rates, OfADataSheetPriceDecodingByItsInstructions) {
  const auto decode = [](int heads, const char* more) {
    return fmt::format(
        "tensor q (1, {0}) bf16\ntensor k (16384, 1024) bf16\ntensor v (16384, 1024) bf16\n"
        "tensor b (1, 2) i32\ntensor c (1, 2) i32\n"
        "o (1, {0}) bf16, lse ({1}, 1) f32 = attention(q, k, v, b, c) "
        "{{heads {1}, kv_heads 8, head_dim 128, causal, kernel splits 16{2}}}",
        heads * 128, heads, more);
  };
  const Rates card = Rates::of_data_sheet(kPeaks);
  const auto seconds = [&](int heads, const char* more) {
    return seconds_of(card, decode(heads, more)) - card.roofline().launch_seconds;
  };
  const double numbers = 2.0 * 16384 * 1024;
  EXPECT_NEAR(seconds(64, "") / (numbers * 28.5 / kInstructionsPerSecond), 1, 1e-9);
  EXPECT_NEAR(seconds(64, ", softcap 50") / (numbers * 45.4 / kInstructionsPerSecond), 1, 1e-9);
  EXPECT_NEAR(seconds(128, "") / (2 * numbers * 28.5 / kInstructionsPerSecond), 1, 1e-9);
  // Of one head each, the bytes are more.
  EXPECT_NEAR(seconds(8, "") / (2 * numbers / (0.8 * 4.8e12)), 1, 1e-2);
}

}  // namespace
}  // namespace snug::plan
