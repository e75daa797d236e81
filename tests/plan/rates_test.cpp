// Lookups in samples whose rates follow a law that is known.
#include "plan/time/rates.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "rate_texts.h"

namespace snug::plan {
namespace {

TEST(RateKey, TellsFormsOfAProductApart) {
  const RateKey plain = key_of(product(100, 70, 30));
  EXPECT_EQ(plain.form.name(), "matmul n t bf16 bf16 > bf16");
  EXPECT_EQ(plain.shape, (std::vector<double>{100, 70, 30}));
  EXPECT_EQ(plain.work, 2.0 * 100 * 70 * 30);
  const RateKey sum = key_of(
      "tensor dy (100, 70) bf16\ntensor x (100, 30) bf16\ntensor dw (70, 30) f32\n"
      "matmul(dy, x) updates (dw) {transpose_a, accumulate}");
  EXPECT_EQ(sum.form.name(), "matmul t n bf16 bf16 += f32");
  EXPECT_EQ(sum.shape, (std::vector<double>{70, 30, 100}));
}

TEST(RateKey, LossCountsTrainedRowsOnly) {
  const std::string text =
      "tensor h (64, 8) f32\ntensor w (100, 8) f32\ntensor t (64) i32\ntensor i (1) f32\n"
      "l (64) f32, s (1) f32 = linear_cross_entropy(h, w, t, i)";
  EXPECT_EQ(key_of(text, program::ExpectedBounds{.trained_fraction = 0.25}).shape,
            (std::vector<double>{16, 100, 8}));
}

TEST(RateKey, AttentionCountsMeanSegments) {
  const std::string text =
      "tensor q (64, 12) f32\ntensor k (64, 6) f32\ntensor v (64, 6) f32\n"
      "tensor b (4, 2) i32\n"
      "o (64, 12) f32, lse (4, 64) f32 = attention(q, k, v, b, b) {heads 4, kv_heads 2, head_dim "
      "3, causal}";
  EXPECT_EQ(key_of(text, program::full_rows(10)).shape, (std::vector<double>{10, 256, 3, 2}));
  EXPECT_EQ(key_of(text, program::full_rows(32)).shape, (std::vector<double>{32, 256, 3, 2}));
}

TEST(RateKey, TellsKindsOfAttentionApart) {
  for (const auto& form : {attention, attention_grad}) {
    const RateKey own = key_of(form(128, ""));
    EXPECT_EQ(key_of(form(128, ", kernel tensor_cores")).form.name(),
              own.form.name() + " on tensor cores");
    const RateKey library = key_of(form(128, ", kernel library"));
    EXPECT_EQ(library.form.name(), own.form.name() + " by library");
    EXPECT_EQ(library.shape, own.shape);
    EXPECT_EQ(library.work, own.work);
    const RateKey few = key_of(form(128, ", kernel few_queries 16384"));
    EXPECT_EQ(few.form.name(), own.form.name() + " few") << "all segments are";
    EXPECT_EQ(few.multiplies, base::DType::f32);
  }
}

TEST(RateKey, TellsAlgorithmsApart) {
  const std::string product =
      "tensor x (64, 32) bf16\ntensor w (16, 32) bf16\ny (64, 16) bf16 = matmul(x, w) {transpose_b";
  const RateKey library = key_of(product + ", algorithm library}");
  EXPECT_EQ(library.form.name(), key_of(product + "}").form.name());
  EXPECT_EQ(key_of(product + ", algorithm thin}").form.name(), library.form.name() + " by thin");
  const std::string loss =
      "tensor h (100, 8) bf16\ntensor w (50, 8) bf16\ntensor t (100) i32\ntensor i (1) f32\n"
      "l (100) f32, s (1) f32 = linear_cross_entropy(h, w, t, i) {algorithm ";
  const RateKey chunks = key_of(loss + "halved_chunks chunk_rows 64}");
  EXPECT_EQ(key_of(loss + "online chunk_rows 64}").form.name(), chunks.form.name() + " online");
  EXPECT_EQ(
      key_of(loss + "halved_chunks chunk_rows 64, products logits_algorithm library}").form.name(),
      chunks.form.name());
  EXPECT_EQ(
      key_of(loss + "halved_chunks chunk_rows 64, products logits_algorithm wide}").form.name(),
      chunks.form.name() + " by wide");
  EXPECT_EQ(chunks.multiplies, base::DType::bf16);
}

TEST(RateKey, NormOfManyTensorsLooksLikeNormOfOne) {
  const RateKey one = key_of("tensor a (50) f32\nn (1) f32 = global_norm(a)");
  const RateKey two = key_of("tensor a (50) f32\ntensor b (50) f32\nn (1) f32 = global_norm(a, b)");
  EXPECT_EQ(one.form.name(), two.form.name());
  EXPECT_NEAR(one.shape[0], two.shape[0], 4);
  EXPECT_NEAR(two.work, 2 * one.work, 8);
}

TEST(Rates, CopiesOfAProductsOperandsTakeTheTimeOfTheirBytes) {
  const std::string product =
      "tensor x (64, 32) f32\ntensor w (16, 32) f32\ny (64, 16) f32 = matmul(x, w) {transpose_b, "
      "algorithm library";
  const RateKey plain = key_of(product + "}");
  const RateKey copied = key_of(product + ", dense a}");
  EXPECT_EQ(copied.form.name(), plain.form.name() + " copied");
  EXPECT_EQ(program::plain(copied.form), plain.form);
  const Rates rates(
      {sample_of(product + "}", 1e9), {"cast f32 > bf16", {1e8}, Work::bytes, 1e8, 1}});
  EXPECT_NEAR(seconds_of(rates, product + ", dense a}") - seconds_of(rates, product + "}"),
              2 * 4 * 64 * 32 / rates.roofline().bytes_per_second, 1e-12);
}

// What was measured between cards says nothing of what the runtime gathers between their hosts.
TEST(Rates, StagingMemoryIsGatheredBetweenHosts) {
  const std::string ends =
      " (1000000) f32 {}pinned_host\nall_gather() updates (all) {{ranks 2, "
      "in_place}} channel interconnect";
  const RateKey key = key_of("tensor all" + fmt::format(fmt::runtime(ends), "staging "));
  EXPECT_EQ(key.form.name(), "all_gather 2 ranks between hosts");
  EXPECT_EQ(between_devices(key.form).name(), "all_gather 2 ranks");
  EXPECT_EQ(key_of("tensor all" + fmt::format(fmt::runtime(ends), "")).form,
            between_devices(key.form));
  const RateSample sample{"all_gather 2 ranks", {2e6}, Work::interconnect_bytes, 2e6, 3e-3};
  const program::Cost cost{.flops = 0, .bytes = key.work, .launches = 0};
  EXPECT_NEAR(Rates({sample}).seconds(key, cost), 3e-3, 1e-9);
  const program::DataSheetRates card{.host_bytes_per_second = 5e10,
                                     .interconnect_bytes_per_second = 4e11};
  EXPECT_NEAR(Rates({sample}, card).seconds(key, cost), 2e6 / 2e9 + 50e-6, 1e-9);
}

TEST(Rates, MeasuredShapeIsReturnedAsMeasured) {
  const Rates rates({sample_of(product(256, 64, 64), 1e9), sample_of(product(256, 64, 128), 9e9)});
  EXPECT_DOUBLE_EQ(seconds_of(rates, product(256, 64, 64)), 2.0 * 256 * 64 * 64 / 1e9);
  EXPECT_EQ(rates.basis(), Basis::calibrated);
}

// A product with a narrow factor runs at a rate that grows with its width, and with the tokens a
// little: a law of powers, which interpolation has to find between and next to the samples.
TEST(Rates, InterpolatesALawOfPowers) {
  const auto rate = [](double m, double n, double k) {
    return 1e8 * n * std::pow(m, 0.1) * std::pow(k, 0.05);
  };
  std::vector<RateSample> samples;
  for (const int m : {256, 1024, 4096})
    for (const int n : {8, 16, 64})
      for (const int k : {256, 1024, 4096})
        samples.push_back(sample_of(product(m, n, k), rate(m, n, k)));
  const Rates rates(samples);
  for (const auto& [m, n, k] : {std::tuple{512, 32, 576}, {2048, 12, 1536}, {700, 16, 704}}) {
    const double expected = 2.0 * m * n * k / rate(m, n, k);
    EXPECT_NEAR(seconds_of(rates, product(m, n, k)) / expected, 1.0, 0.05) << m << " " << n;
  }
}

TEST(Rates, StaysWithinTheRatesOfItsNeighbours) {
  std::vector<RateSample> samples;
  for (const int m : {64, 128, 256, 512}) samples.push_back(sample_of(product(m, 64, 64), 1e9 * m));
  const Rates rates(samples);
  const double rate = 2.0 * 1024 * 64 * 64 / seconds_of(rates, product(1024, 64, 64));
  EXPECT_LE(rate, 1e9 * 512 * 1.0001);
}

// A calibration file can hold anything under a name.
TEST(Rates, SamplesOfOtherDimensionsAreRefused) {
  RateSample flat = sample_of(product(256, 64, 64), 1e9);
  flat.shape.pop_back();
  const Rates rates({flat});
  EXPECT_THROW(seconds_of(rates, product(256, 64, 64)), base::UserError);
}

TEST(Rates, FarFromSamplesBandwidthBounds) {
  const Rates rates({sample_of(product(256, 256, 256), 1e9),
                     sample_of("tensor a (100, 10) f32\ny (100, 10) f32 = add(a, a)", 1e6)});
  const double bytes = 2.0 * (1.0 * 65536 + 1.0 * 65536 + 65536.0 * 65536);
  const double far = seconds_of(rates, product(65536, 65536, 1));
  EXPECT_GE(far, bytes / rates.roofline().bytes_per_second);
}

// What took little more than a launch says nothing of far larger products.
TEST(Rates, OfLaunchesAloneNothingFollowsForLargeWork) {
  const auto other_product = [](int size) {
    return fmt::format(
        "tensor x ({0}, {0}) bf16\ntensor w ({0}, {0}) bf16\ny ({0}, {0}) bf16 = matmul(x, w)",
        size);
  };
  RateSample launch = sample_of("tensor a (100000, 10) f32\ny (100000, 10) f32 = add(a, a)", 1e9);
  launch.seconds = 5e-6;
  RateSample tiny = sample_of(other_product(64), 1e9);
  tiny.seconds = 7e-6;
  std::vector<RateSample> samples{launch, tiny};
  for (const int size : {1024, 2048, 4096, 8192})
    samples.push_back(sample_of(product(size, size, size), 40e12));
  EXPECT_NEAR(seconds_of(Rates(samples), other_product(4096)) / (2 * std::pow(4096.0, 3) / 40e12),
              1, 0.01);
}

TEST(Rates, UnknownNamesAreBoundByTheRoofline) {
  const Rates rates({sample_of(product(256, 256, 256), 1e9)});
  const std::string add = "tensor a (1000, 10) f32\ny (1000, 10) f32 = add(a, a)";
  const Roofline& roofline = rates.roofline();
  EXPECT_DOUBLE_EQ(seconds_of(rates, add),
                   80000 / roofline.bytes_per_second + roofline.launch_seconds);
}

// What was measured counts, of a link the slower way; else a share of the maker's peak.
TEST(Rates, TakeTheLinkAndTheHostsMemoryFromSamplesOfTheMachine) {
  const RateSample product_sample = sample_of(product(256, 256, 256), 1e12);
  const program::DataSheetRates peaks{.host_bytes_per_second = 64e9};
  const Roofline planned = Rates({product_sample}, peaks).roofline();
  EXPECT_DOUBLE_EQ(planned.host_bytes_per_second, 0.85 * 64e9);
  const auto of_machine = [](std::string_view name, Work unit, double rate) {
    return RateSample{std::string(name), {1e9}, unit, 1e9, 1e9 / rate};
  };
  const Rates rates({product_sample, of_machine(kLinkToDevice, Work::link_bytes, 50e9),
                     of_machine(kLinkToHost, Work::link_bytes, 40e9),
                     of_machine(kHostMemory, Work::host_bytes, 120e9)},
                    peaks);
  EXPECT_DOUBLE_EQ(rates.roofline().host_bytes_per_second, 40e9);
  EXPECT_DOUBLE_EQ(rates.roofline().host_memory_bytes_per_second, 120e9);
  EXPECT_DOUBLE_EQ(rates.roofline().bytes_per_second, planned.bytes_per_second);
  EXPECT_NEAR(seconds_of(rates,
                         "tensor a (1000000, 1000) f32\n"
                         "y (1000000, 1000) f32 host = transfer(a)"),
              4e9 / 40e9, 1e-3);
}

// TFLOP/s that a card with a peak of 989 is planned to reach.
TEST(Rates, OfADataSheetHaveOneShareForOwnAttentionAndOneForItsGradient) {
  for (const double length : {256.0, 2048.0, 8192.0, 16384.0}) {
    EXPECT_NEAR(planned_rate(attention(128, ", kernel tensor_cores"), length), 0.215 * 989, 1e-6);
    EXPECT_NEAR(planned_rate(attention_grad(64, ", kernel tensor_cores"), length), 0.148 * 989,
                1e-6);
    EXPECT_NEAR(planned_rate(attention(128, ""), length), 0.215 * 67, 1e-6);
  }
}

TEST(Rates, OfADataSheetHaveALibrarysAttentionByLength) {
  const std::string forward = attention(128, ", kernel library");
  const std::string gradient = attention_grad(128, ", kernel library");
  struct Row {
    double segment_tokens, forward, gradient;
  };
  // As measured, less what a whole step's power leaves; between two lengths; short, where own
  // kernels' share is the least; very long.
  for (const Row& row : {Row{2048, 484, 370}, Row{4096, 591, 474}, Row{8192, 644, 541},
                         Row{16384, 673, 579}, Row{3072, 537.5, 422}, Row{1536, 363, 277.5}}) {
    EXPECT_NEAR(planned_rate(forward, row.segment_tokens), 0.80 * row.forward, 1e-6);
    EXPECT_NEAR(planned_rate(gradient, row.segment_tokens), 0.78 * row.gradient, 1e-6);
  }
  EXPECT_NEAR(planned_rate(forward, 512), 0.215 * 989, 1e-6);
  EXPECT_NEAR(planned_rate(gradient, 512), 0.148 * 989, 1e-6);
}

// Heads of 64 stay below what is public of them, and so do wide ones.
TEST(Rates, OfADataSheetAreCarefulWithOtherHeads) {
  EXPECT_NEAR(planned_rate(attention(64, ", kernel library"), 16384), 0.80 * 336.5, 1e-6);
  EXPECT_NEAR(planned_rate(attention(32, ", kernel library"), 16384), 0.215 * 989, 1e-6);
  EXPECT_NEAR(planned_rate(attention(256, ", kernel library"), 16384), 0.78 * 0.80 * 673, 1e-6);
}

// A sample of the one says nothing of the other.
TEST(Rates, CalibratedAttentionIsItsOwnOrTheLibrarys) {
  const std::string own = attention(128, "");
  const std::string library = attention(128, ", kernel library");
  const Rates rates({sample_of(own, 250e12), sample_of(library, 600e12)});
  const double work = key_of(own).work;
  EXPECT_DOUBLE_EQ(seconds_of(rates, own), work / 250e12);
  EXPECT_DOUBLE_EQ(seconds_of(rates, library), work / 600e12);
}

// What a card's calibration does not have is priced as its data sheet is.
TEST(Rates, AttentionThatWasNotMeasuredHasTheDataSheetsShare) {
  const std::string add = "tensor a (16384, 4096) f32\ny (16384, 4096) f32 = add(a, a)";
  const Rates rates({sample_of(product(4096, 4096, 4096), 900e12), sample_of(add, 4e12)}, kPeaks);
  for (const char* algorithm : {", kernel tensor_cores", ", kernel library", ""})
    EXPECT_GE(seconds_of(rates, attention(128, algorithm)),
              key_of(attention(128, algorithm)).work / (0.7 * 989e12));
  EXPECT_NEAR(key_of(attention(128, ", kernel tensor_cores")).work /
                  seconds_of(rates, attention(128, ", kernel tensor_cores")),
              0.215 * 989e12, 10e12);  // its launch takes some of the time
}

// A card multiplies both formats of 16 bits at one rate; a processor widens f16.
TEST(Rates, OfF16AreThoseOfBf16OnACard) {
  const auto in_f16 = [](std::string text) {
    for (size_t at = 0; (at = text.find("bf16", at)) != std::string::npos;)
      text.replace(at, 4, "f16");
    return text;
  };
  const std::string in_bf16[]{product(4096, 4096, 4096), attention(128, ", kernel tensor_cores"),
                              attention_grad(64, ", kernel library"),
                              "tensor a (16384, 4096) bf16\ny (16384, 4096) bf16 = add(a, a)"};
  const std::vector<RateSample> samples{sample_of(in_bf16[0], 700e12),
                                        sample_of(in_bf16[1], 200e12), sample_of(in_bf16[3], 3e12)};
  const Rates measured(samples, kPeaks);
  const Rates by_data_sheet = Rates::of_data_sheet(kPeaks);
  const Rates of_processor(samples);
  for (const std::string& text : in_bf16) {
    EXPECT_DOUBLE_EQ(seconds_of(measured, in_f16(text)), seconds_of(measured, text)) << text;
    EXPECT_DOUBLE_EQ(seconds_of(by_data_sheet, in_f16(text)), seconds_of(by_data_sheet, text));
  }
  EXPECT_GT(seconds_of(of_processor, in_f16(in_bf16[0])), 2 * seconds_of(of_processor, in_bf16[0]));
}

// Copies between spaces go over the link, whatever else the machine does.
TEST(Rates, OfTransfersAreTheLinks) {
  const Program program = parse_text(
      "program p\ntensor x (1000, 1000) f32\ny (1000, 1000) f32 pinned_host = transfer(x)");
  const auto seconds = [&](const Rates& rates) {
    return rates.seconds({program, program.operations[0]}, {}) - rates.roofline().launch_seconds;
  };
  const program::DataSheetRates peaks{.bf16_flops_per_second = 1e15,
                                      .f32_flops_per_second = 1e14,
                                      .bytes_per_second = 4e12,
                                      .host_bytes_per_second = 64e9};
  const std::vector<RateSample> samples{{"add f32 f32 > f32", {1e6}, Work::bytes, 1e6, 1e-3}};
  EXPECT_NEAR(seconds(Rates::of_data_sheet(peaks)), 4e6 / (0.85 * 64e9), 1e-12);
  EXPECT_NEAR(seconds(Rates(samples, peaks)), 4e6 / (0.85 * 64e9), 1e-12);
  EXPECT_NEAR(seconds(Rates(samples)), 4e6 / (1e9 / 2), 1e-12);
}

// What the low product of an augmented one leaves is written and read by itself.
TEST(Rates, OfTwoProductsAddWhatGoesBetweenThem) {
  const program::DataSheetRates peaks{.bf16_flops_per_second = 1e15,
                                      .f32_flops_per_second = 1e14,
                                      .bytes_per_second = 4e12,
                                      .host_bytes_per_second = 64e9};
  const Rates rates = Rates::of_data_sheet(peaks);
  const std::string augmented =
      "tensor x (4096, 4096) bf16\ntensor w (4096, 4096) bf16\ntensor low (4096, 16) bf16\n"
      "tensor up (4096, 16) bf16\ny (4096, 4096) bf16 = matmul(x, w, low, up) "
      "{transpose_b, augmented, low_transpose_b";
  const double between = 2.0 * (4096.0 * 4096 + 2 * 4096 * 16) / (0.8 * 4e12);
  EXPECT_NEAR(seconds_of(rates, augmented + ", products 2}") - seconds_of(rates, augmented + "}"),
              between + rates.roofline().launch_seconds, 1e-9);
}

// A timed launch is taken off again, down to what the bytes take.
TEST(Rates, OfAJoinedStepLeaveTheLaunchOut) {
  const std::string step =
      "tensor g (1000) f32\ntensor factor (1) f32\ntensor rate (1) f32\ntensor step (1) i32\n"
      "tensor w (1000) f32\ntensor m (1000) f32\ntensor v (1000) f32\n"
      "adamw(g, factor, rate, step) updates (w, m, v)";
  const Rates assumed = Rates::assumed(1);
  EXPECT_NEAR(seconds_of(assumed, step) - seconds_of(assumed, step + " joined"),
              assumed.roofline().launch_seconds, 1e-12);
  // The launch is the fastest sample's time, and memory is as fast as most samples say.
  std::vector<RateSample> samples(10, {"add f32 f32 > f32", {1e6}, Work::bytes, 1e6, 1e-5});
  samples.push_back(sample_of(step, 1e9));
  const Rates measured(samples);
  const double saved = seconds_of(measured, step) - seconds_of(measured, step + " joined");
  EXPECT_NEAR(saved, measured.roofline().launch_seconds, 1e-9);
}

TEST(Rates, AssumedRowGrowsWithThreads) {
  const Rates two = Rates::assumed(2);
  const Rates four = Rates::assumed(4);
  EXPECT_EQ(two.basis(), Basis::assumed);
  EXPECT_GT(seconds_of(two, product(4096, 4096, 4096)),
            1.9 * seconds_of(four, product(4096, 4096, 4096)));
}

// The ranks of a machine copy, update on the host and read files at the same time.
TEST(Rates, RanksShareAMachine) {
  const program::DataSheetRates peaks{.bf16_flops_per_second = 989e12,
                                      .f32_flops_per_second = 495e12,
                                      .bytes_per_second = 3.35e12,
                                      .host_bytes_per_second = 64e9};
  const Rates alone = Rates::of_data_sheet(peaks);
  Rates of_one = alone;
  of_one.share_machine(1);
  EXPECT_EQ(of_one.roofline().host_bytes_per_second, alone.roofline().host_bytes_per_second);
  Rates of_eight = alone;
  of_eight.share_machine(8);
  EXPECT_EQ(of_eight.roofline().host_memory_bytes_per_second, 40e9);
  EXPECT_EQ(of_eight.roofline().host_bytes_per_second, 40e9);
  EXPECT_EQ(of_eight.roofline().storage_bytes_per_second, kAssumedStorageBytesPerSecond / 8);
  const RateSample memory{std::string(kHostMemory), {1e9}, Work::host_bytes, 1e9, 1.0 / 200};
  Rates measured({memory}, peaks);
  measured.share_machine(8);
  EXPECT_EQ(measured.roofline().host_memory_bytes_per_second, 200e9 / 8);
}

}  // namespace
}  // namespace snug::plan
