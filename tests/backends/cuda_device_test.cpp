// The CUDA backend on a real card: every kind against the reference in fp64 (operation_check.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "backends/open_cuda.h"
#include "base/error.h"
#include "collectives_check.h"
#include "operation_check.h"
#include "paged_attention_check.h"
#include "transfers_check.h"
#include "weights_check.h"

namespace snug::backends::test {
namespace {

class CudaDevice : public ::testing::TestWithParam<program::Kind> {};

TEST_P(CudaDevice, agrees_with_fp64) {
  if (!has_cuda_device()) GTEST_SKIP() << "skipped: no CUDA device";
  const auto backend = open_backend("cuda", {});
  check_kind(*backend, GetParam(), cuda_must_run);
}

INSTANTIATE_TEST_SUITE_P(, CudaDevice, ::testing::ValuesIn(all_kinds()), [](const auto& test) {
  return std::string(program::name_of(test.param));
});

class CudaWeights : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_cuda_device()) GTEST_SKIP() << "skipped: no CUDA device";
    backend_ = open_backend("cuda", {});
  }
  std::unique_ptr<Backend> backend_;
};

TEST_F(CudaWeights, values_are_the_reference_s) { check_fill(*backend_); }
TEST_F(CudaWeights, codes_are_the_host_s) { check_quantize_nf4(*backend_); }
TEST_F(CudaWeights, are_updated_as_on_the_host) {
  check_same_bits(*backend_, *open_backend("cpu", {}), kUpdates);
}
TEST_F(CudaWeights, likeliest_tokens_are_the_reference_s) {
  check_same_bits(*backend_, *open_backend("reference", {}), {program::Kind::top_k});
}
TEST_F(CudaWeights, a_list_of_steps_is_its_steps) {
  check_list_of_steps(
      *backend_, [] {}, [] {});
}

// As on the emulator (cuda_paged_attention_test.cpp).
TEST(CudaPages, hold_keys_anywhere_with_the_same_bits_next_to_any_others) {
  if (!has_cuda_device()) GTEST_SKIP() << "skipped: no CUDA device";
  const auto backend = open_backend("cuda", {});
  check_pages(*backend, RowsWithoutPages::same_bits_of_one_segment);
  check_neighbours(*backend);
}

TEST(CudaTransfers, bring_what_was_there_also_in_a_graph) {
  if (!has_cuda_device()) GTEST_SKIP() << "skipped: no CUDA device";
  check_transfers(*open_backend("cuda", {}));
}

// A rank for each card, up to four; one rank, a group of which is connected by NCCL too, where
// there is one card: NCCL takes no two ranks on one.
TEST(CudaCollectives, have_the_bits_of_the_host) {
  if (!has_cuda_device()) GTEST_SKIP() << "skipped: no CUDA device";
  constexpr int kMaxRanks = 4;
  const int ranks = std::min(kMaxRanks, count_cuda_devices());
  const std::string error = check_collectives(
      [](const comm::Mesh& mesh) { return open_backend("cpu", {.threads = 1, .mesh = &mesh}); },
      [](const comm::Mesh& mesh) {
        return open_backend("cuda", {.mesh = &mesh, .timeout_seconds = 60});
      },
      ranks);
  if (error.find("is not found") != std::string::npos) GTEST_SKIP() << "skipped: " << error;
  EXPECT_EQ(error, "");
  std::printf("ranks on cards of their own: %d\n", ranks);
}

TEST(CudaWithoutDevice, is_an_error_that_names_the_way_out) {
  if (has_cuda_device()) GTEST_SKIP() << "there is a device";
  try {
    open_backend("cuda", {});
    FAIL() << "opened";
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("backend: cpu"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace snug::backends::test
