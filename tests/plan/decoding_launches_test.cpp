// What a token takes on a card that is not here: how many launches a layer is, and which operations
// share one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "../source_folder.h"
#include "backends/cuda/device/hardware_table.h"
#include "backends/cuda/device/planned_card.h"
#include "models/config/config.h"
#include "plan/job/job.h"
#include "plan/time/clock.h"
#include "plan/time/token_work.h"
#include "program/ir/program_name.h"
#include "program/kinds/kind.h"

namespace snug::plan {
namespace {

using backends::cuda::find_hardware;
using backends::cuda::PlannedCard;

constexpr int64_t kCapacity = 1024;

// `layers` 0: those of the model.
Job decoding_job(const char* model, int64_t sequences,
                 std::optional<passes::QuantizeOptions> quantization = {}, int64_t layers = 2) {
  InferenceSpec spec;
  spec.model = models::preset(model).value();
  if (layers > 0) spec.model.num_layers = layers;
  spec.shape.sequences = sequences;
  spec.shape.capacity = kCapacity;
  spec.shape.prefill_tokens = 64;
  spec.quantization = std::move(quantization);
  spec.verify = true;
  spec.init_seed = 1;
  return plan_inference(spec, PlannedCard(*find_hardware("h100"), 0));
}

// Kinds of a layer's operations, those of one launch in one word.
std::vector<std::string> launches_of_layer(const Job& job) {
  std::vector<std::string> launches;
  for (const program::Operation& operation : job.find(program::ProgramName::decode)->operations) {
    if (operation.layer != 1) continue;
    const std::string kind(name_of(operation.kind()));
    if (operation.joined)
      launches.back() += "+" + kind;
    else
      launches.push_back(kind);
  }
  return launches;
}

TokenWork work_of(const Job& job) {
  return token_work(*job.find(program::ProgramName::decode), program::full_rows(kCapacity));
}

TEST(DecodingLaunches, ALayerIsFive) {
  const std::string kQueriesKeysValues =
      "rms_norm+matmul+matmul+matmul+rope+rope+cache_write+cache_write";
  for (const int64_t sequences : {1, 4}) {
    const Job job = decoding_job("llama-3.1-8b", sequences);
    EXPECT_EQ(launches_of_layer(job),
              (std::vector<std::string>{kQueriesKeysValues, "attention", "matmul",
                                        "rms_norm+matmul+matmul+silu_mul", "matmul"}));
    EXPECT_EQ(work_of(job).layer_launches, 5);
  }
  const Job job =
      decoding_job("llama-3.1-8b", 1, passes::QuantizeOptions{.nested = true, .kept = {}});
  EXPECT_EQ(
      launches_of_layer(job),
      (std::vector<std::string>{
          "rms_norm+matmul_nf4+matmul_nf4+matmul_nf4+rope+rope+cache_write+cache_write",
          "attention", "matmul_nf4", "rms_norm+matmul_nf4+matmul_nf4+silu_mul", "matmul_nf4"}));
  EXPECT_EQ(work_of(job).layer_launches, 5);
}

// Biases are added where the products that they follow are finished.
TEST(DecodingLaunches, OfBiasedProjectionsAreFive) {
  const Job job = decoding_job("qwen2.5-7b", 1);
  EXPECT_EQ(launches_of_layer(job),
            (std::vector<std::string>{"rms_norm+matmul+add_bias+matmul+add_bias+matmul+add_bias+"
                                      "rope+rope+cache_write+cache_write",
                                      "attention", "matmul", "rms_norm+matmul+matmul+silu_mul",
                                      "matmul"}));
  EXPECT_EQ(work_of(job).layer_launches, 5);
}

// Fused projections are one product, and views of it are not what a launch may share.
TEST(DecodingLaunches, OfFusedProjectionsAreSeven) {
  const Job job = decoding_job("phi-3-mini-128k", 1);
  EXPECT_EQ(
      launches_of_layer(job),
      (std::vector<std::string>{"rms_norm+matmul+rope", "cache_write+cache_write", "attention",
                                "matmul", "rms_norm+matmul", "silu_mul", "matmul"}));
}

// A norm of more than four rows has a launch of its own.
TEST(DecodingLaunches, OfSomeSequencesAreSeven) {
  const Job job = decoding_job("llama-3.1-8b", 16);
  EXPECT_EQ(launches_of_layer(job),
            (std::vector<std::string>{
                "rms_norm", "matmul+matmul+matmul+rope+rope+cache_write+cache_write", "attention",
                "matmul", "rms_norm", "matmul+matmul+silu_mul", "matmul"}));
}

// More rows than a product of few takes are cuBLASLt's, one by one.
TEST(DecodingLaunches, OfManySequencesStandAlone) {
  const Job job = decoding_job("llama-3.1-8b", 17);
  EXPECT_EQ(launches_of_layer(job),
            (std::vector<std::string>{"rms_norm", "matmul", "matmul", "matmul",
                                      "rope+rope+cache_write+cache_write", "attention", "matmul",
                                      "rms_norm", "matmul", "matmul", "silu_mul", "matmul"}));
}

// A token reads every weight once: of this 8B's two layers and its head.
TEST(DecodingLaunches, BytesAreTheWeights) {
  const double layer = 2.0 * 218'103'808;
  const double head = 2.0 * 128'256 * 4096;
  const TokenWork work = work_of(decoding_job("llama-3.1-8b", 1));
  EXPECT_GE(work.bytes, 2 * layer + head);
  EXPECT_LE(work.bytes, 1.02 * (2 * layer + head));
}

// The seconds that a data sheet lets expect of a run of `decode`.
double token_seconds(const Job& job, const char* card) {
  const Rates rates = Rates::of_data_sheet(backends::cuda::rates_of(*find_hardware(card)));
  return simulate(*job.find(program::ProgramName::decode), rates, program::full_rows(kCapacity))
      .seconds;
}

double token_seconds(int64_t sequences, bool quantized) {
  std::optional<passes::QuantizeOptions> quantization;
  if (quantized) quantization = passes::QuantizeOptions{.nested = true, .kept = {}};
  return token_seconds(decoding_job("llama-3.1-8b", sequences, quantization, 0), "h200");
}

// A weight is read once for up to 16 sequences, and where it is stored as codes never made first.
TEST(DecodingLaunches, SixteenSequencesTakeLittleMoreThanOne) {
  EXPECT_LT(token_seconds(16, false), 1.5 * token_seconds(1, false));
  EXPECT_LT(token_seconds(16, true), 2 * token_seconds(1, true));
  EXPECT_LT(token_seconds(17, true), 1.1 * token_seconds(16, true));
}

// The table of bench/results/kernels.md.
TEST(DecodingLaunches, TheResultsHaveThem) {
  std::string table =
      "| model | weights | launches per layer | per token | GB per token | tokens/s, H100 | "
      "H200 "
      "|\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const char* model : {"llama-3.1-8b", "qwen2.5-7b", "phi-3-mini-128k"})
    for (const bool quantized : {false, true}) {
      std::optional<passes::QuantizeOptions> quantization;
      if (quantized) quantization = passes::QuantizeOptions{.nested = true, .kept = {}};
      const Job job = decoding_job(model, 1, quantization, 0);
      const TokenWork work = work_of(job);
      table += fmt::format("| {} | {} | {:.0f} | {:.0f} | {:.2f} | {:.0f} | {:.0f} |\n", model,
                           quantized ? "NF4, nested" : "bf16", work.layer_launches, work.launches,
                           work.bytes * 1e-9, 1 / token_seconds(job, "h100"),
                           1 / token_seconds(job, "h200"));
    }
  std::ifstream file(test::source_folder() + "/bench/results/kernels.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(page.find(table), std::string::npos) << "bench/results/kernels.md has no\n" << table;
}

}  // namespace
}  // namespace snug::plan
