// Products of few rows on cards whose blocks have more shared memory, and less.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/device/hardware_table.h"
#include "backends/cuda/product/kernels/few_rows_matrix.h"
#include "backends/cuda/product/kernels/few_rows_ring.h"
#include "base/dtype.h"
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

// Each of the four multiprocessors has one, whatever it has room for.
TEST(FewRows, begin_a_block_on_each_multiprocessor) {
  EXPECT_EQ(launch_of_product(99 << 10), "4 x 1 x 1");
  EXPECT_EQ(launch_of_product(227 << 10), "4 x 1 x 1");
}

// Bytes that end where a page begins that nobody may touch.
class BytesAtPageEnd {
 public:
  explicit BytesAtPageEnd(size_t bytes)
      : whole_((bytes + kPage - 1) / kPage * kPage + kPage), bytes_(bytes) {
    mapped_ = static_cast<std::byte*>(
        mmap(nullptr, whole_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(mapped_ + whole_ - kPage, kPage, PROT_NONE);
  }
  BytesAtPageEnd(const BytesAtPageEnd&) = delete;
  BytesAtPageEnd& operator=(const BytesAtPageEnd&) = delete;
  ~BytesAtPageEnd() { munmap(mapped_, whole_); }
  std::byte* data() const { return mapped_ + whole_ - kPage - bytes_; }

 private:
  static constexpr size_t kPage = 4096;
  size_t whole_;
  size_t bytes_;
  std::byte* mapped_;
};

uint16_t bits_of(float value) { return std::bit_cast<uint16_t>(base::to_bfloat16(value)); }

constexpr int64_t kRows = 3;
constexpr int64_t kOutputs = 40;  // the last tile is half a tile

cuda::Card card_with(int64_t shared_bytes) {
  return {.compute_capability = 90, .multiprocessors = 2, .shared_bytes = shared_bytes};
}

// A weight's products with so many rows: y, row after row.
template <typename Weight>
std::vector<float> products(const Weight& weight, const std::vector<uint16_t>& x, int64_t rows,
                            int64_t columns, int64_t shared_bytes) {
  std::vector<float> y(static_cast<size_t>(rows * kOutputs));
  cuda::FewRowsLaunch<Weight> launch;
  launch.rows = rows;
  launch.columns = columns;
  launch.x = {const_cast<uint16_t*>(x.data()), columns, cuda::ElementFormat::bf16};
  launch.add({.weight = weight,
              .addend = {},
              .y = {y.data(), kOutputs, cuda::ElementFormat::f32},
              .outputs = kOutputs},
             true);
  cuda::multiply_few_rows(launch, card_with(shared_bytes), nullptr);
  return y;
}

// In this kernel a row has the same bits alone and among others. (An answer may still depend on how
// many are made beside it: attention is split by their number.)
template <typename Weight>
void expect_rows_alike(const Weight& weight, int64_t columns) {
  Random random(test_seed());
  std::vector<uint16_t> x;
  const bool has_codes = std::is_same_v<Weight, cuda::Nf4Weight>;
  const int64_t most = has_codes ? cuda::kMostFewCodeRows : cuda::kMostFewRows;
  for (const double value : normal(random, most * columns))
    x.push_back(bits_of(static_cast<float>(value)));
  std::vector<std::vector<float>> alone;
  for (int64_t row = 0; row < most; ++row)
    alone.push_back(products(weight, {x.begin() + row * columns, x.begin() + (row + 1) * columns},
                             1, columns, int64_t{99} << 10));
  for (const int64_t shared_bytes : {int64_t{99} << 10, int64_t{227} << 10})
    for (const int64_t rows : {2, 4, 5, 8, 9, 16, 17, 64}) {
      if (rows > most) continue;
      const std::vector<float> all = products(weight, x, rows, columns, shared_bytes);
      for (int64_t row = 0; row < rows; ++row) {
        const std::vector<float>& own = alone[static_cast<size_t>(row)];
        ASSERT_TRUE(std::equal(own.begin(), own.end(), all.begin() + row * kOutputs))
            << row << " of " << rows << ", SNUG_TEST_SEED=" << test_seed();
      }
    }
}

TEST(FewRows, are_alike_alone_and_among_others) {
  for (const int64_t columns : {72, 2048}) {  // a block of 99 KiB keeps 16 rows of the first alone
    Random random(test_seed() + 1);
    std::vector<uint16_t> weight;
    for (const double value : normal(random, kOutputs * columns))
      weight.push_back(bits_of(static_cast<float>(value)));
    expect_rows_alike(cuda::NarrowWeight{weight.data(), columns}, columns);
  }
  constexpr int64_t kColumns = 1088;
  Random random(test_seed() + 2);
  std::vector<uint8_t> codes;
  for (const double value : integers(random, kOutputs * kColumns / 2, 0, 255))
    codes.push_back(static_cast<uint8_t>(value));
  std::vector<float> absmax;
  for (const double value : normal(random, kOutputs * kColumns / 64))
    absmax.push_back(static_cast<float>(value));
  expect_rows_alike(cuda::Nf4Weight{.codes = codes.data(), .absmax = absmax.data()}, kColumns);
}

// A block copies ahead what it multiplies, and nothing beyond.
TEST(FewRows, read_no_weights_beyond_the_last) {
  constexpr int64_t kColumns = 328;  // the last step is a quarter of one
  const BytesAtPageEnd weight_bytes(kOutputs * kColumns * 2);
  auto* weight = reinterpret_cast<uint16_t*>(weight_bytes.data());
  std::vector<uint16_t> x(kRows * kColumns);
  const auto w_at = [](int64_t i) { return static_cast<float>(i % 7 - 3); };
  const auto x_at = [](int64_t i) { return static_cast<float>(i % 5 - 2); };
  for (int64_t i = 0; i < kOutputs * kColumns; ++i) weight[i] = bits_of(w_at(i));
  for (int64_t i = 0; i < kRows * kColumns; ++i) x[static_cast<size_t>(i)] = bits_of(x_at(i));
  for (const int64_t shared_bytes : {int64_t{99} << 10, int64_t{227} << 10}) {
    std::vector<float> y(kRows * kOutputs, -1.0F);
    cuda::FewRowsLaunch<cuda::NarrowWeight> launch;
    launch.rows = kRows;
    launch.columns = kColumns;
    launch.x = {x.data(), kColumns, cuda::ElementFormat::bf16};
    launch.add({.weight = {weight, kColumns},
                .addend = {},
                .y = {y.data(), kOutputs, cuda::ElementFormat::f32},
                .outputs = kOutputs},
               true);
    cuda::multiply_few_rows(launch, card_with(shared_bytes), nullptr);
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t output = 0; output < kOutputs; ++output) {
        float sum = 0.0F;  // of small integers, exact
        for (int64_t i = 0; i < kColumns; ++i)
          sum += w_at(output * kColumns + i) * x_at(row * kColumns + i);
        ASSERT_EQ(y[static_cast<size_t>(row * kOutputs + output)], sum) << row << ", " << output;
      }
  }
}

TEST(FewRows, read_no_codes_beyond_the_last) {
  constexpr int64_t kColumns = 320;  // the last step is half of one
  constexpr int64_t kBlocks = kOutputs * kColumns / 64;
  const BytesAtPageEnd codes(kOutputs * kColumns / 2);
  const BytesAtPageEnd absmax_codes(kBlocks);
  const BytesAtPageEnd nested_absmax(sizeof(float));
  // Code 15 is one, and so are scales: 0.5 x 1 + 0.5.
  std::memset(codes.data(), 0xff, static_cast<size_t>(kOutputs * kColumns / 2));
  std::memset(absmax_codes.data(), 3, static_cast<size_t>(kBlocks));
  *reinterpret_cast<float*>(nested_absmax.data()) = 1.0F;
  std::vector<float> map(256, -1.0F);
  map[3] = 0.5F;
  const float offset = 0.5F;
  const std::vector<uint16_t> x(kRows * kColumns, bits_of(1.0F));
  for (const int64_t shared_bytes : {int64_t{99} << 10, int64_t{227} << 10}) {
    std::vector<float> y(kRows * kOutputs, -1.0F);
    cuda::FewRowsLaunch<cuda::Nf4Weight> launch;
    launch.rows = kRows;
    launch.columns = kColumns;
    launch.x = {const_cast<uint16_t*>(x.data()), kColumns, cuda::ElementFormat::bf16};
    launch.add({.weight = {.codes = reinterpret_cast<const uint8_t*>(codes.data()),
                           .absmax_codes = reinterpret_cast<const uint8_t*>(absmax_codes.data()),
                           .nested_absmax = reinterpret_cast<const float*>(nested_absmax.data()),
                           .nested_map = map.data(),
                           .nested_offset = &offset},
                .addend = {},
                .y = {y.data(), kOutputs, cuda::ElementFormat::f32},
                .outputs = kOutputs},
               true);
    cuda::multiply_few_rows(launch, card_with(shared_bytes), nullptr);
    for (const float value : y) ASSERT_EQ(value, static_cast<float>(kColumns));
  }
}

}  // namespace
}  // namespace snug::backends::test
