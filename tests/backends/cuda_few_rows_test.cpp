// Products of few rows on cards whose blocks have more shared memory, and less.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/device/hardware_table.h"
#include "comparison.h"
#include "device_record.h"
#include "operation_check.h"
#include "program/kinds/product/nf4.h"
#include "refusals.h"

namespace snug::backends::test {
namespace {

class FewRowsByCard : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { cuda_emulator::most_shared_bytes = GetParam(); }
  void TearDown() override {
    cuda_emulator::most_shared_bytes = cuda_emulator::kLargestSharedBytes;
  }
};

// Rows of x that a block keeps, and rows that it reads where they lie: either way all agree.
TEST_P(FewRowsByCard, multiplies_weights_of_codes) {
  cuda::CudaBackend backend({});
  check_kind(backend, program::Kind::matmul_nf4, cuda_must_run, true);
}

INSTANTIATE_TEST_SUITE_P(, FewRowsByCard,
                         ::testing::Values(cuda::kLeastSharedBytes,
                                           cuda_emulator::kLargestSharedBytes));

// The blocks of a product of 13 tiles of outputs with a weight of codes.
std::string launch_of_product(int64_t shared_bytes) {
  cuda_emulator::most_shared_bytes = shared_bytes;
  cuda::CudaBackend backend({});
  Random random(test_seed());
  constexpr int64_t kOut = 13 * 16;
  constexpr int64_t kIn = 640;
  CaseBuilder builder(kAllTypes[1], random);
  const auto x = builder.activation({4, kIn});
  const auto codes = builder.input({kOut * kIn / 2, 1}, program::DType::u8,
                                   integers(random, kOut * kIn / 2, 0, 255));
  const auto absmax = builder.measure({kOut * kIn / 64}, Values(kOut * kIn / 64, 1.0));
  const auto y = builder.output_activation({4, kOut});
  const OperationCase made =
      builder.finish("product", program::MatmulNf4{}, {x, codes, absmax}, {y});
  std::vector<std::string> record;
  cuda_emulator::device_record = &record;
  const RunResult result = guarded_run(backend, made.program, made.inputs);
  cuda_emulator::device_record = nullptr;
  cuda_emulator::most_shared_bytes = cuda_emulator::kLargestSharedBytes;
  for (const std::string& violation : result.violations) ADD_FAILURE() << violation;
  EXPECT_EQ(record.size(), 1U);
  const std::string& line = record.at(0);
  return line.substr(line.find(": ") + 2, line.find(" blocks") - line.find(": ") - 2);
}

// Blocks are as many as there are at a time on four multiprocessors, or as many as there are tiles:
// a block of this product takes 47 KiB, of which 100 KiB hold two and 228 more than registers do.
TEST(FewRows, begin_as_many_blocks_as_a_card_holds) {
  EXPECT_EQ(launch_of_product(99 << 10), "8 x 1 x 1");
  EXPECT_EQ(launch_of_product(227 << 10), "12 x 1 x 1");
}

}  // namespace
}  // namespace snug::backends::test
