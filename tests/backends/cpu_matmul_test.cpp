// Products of the CPU backend against naive loops in fp64: odd sizes, every transpose, operands
// with gaps, sums into what is there, workspaces poisoned. SNUG_ISA selects the path that is
// tested.
#include <gtest/gtest.h>

#include <algorithm>

#include "../base/captured_stream.h"
#include "backends/formulas/random_bits.h"
#include "base/error.h"
#include "matmul_case.h"
#include "program/kinds/kind.h"
#include "program/kinds/product/matmul.h"

namespace snug::backends::cpu {
namespace {

using testing::dies;

struct Sizes {
  int64_t m, n, k;
};

// Gaps between the rows of a, b and c.
struct Gaps {
  int64_t a, b, c;
};

constexpr Gaps kNoGaps{0, 0, 0};

// Every transpose and every sum, in each pair of types.
void check_every_form(const Sizes& sizes, const Gaps& gaps) {
  for (const auto& [factors, result] : type_pairs())
    for (int flags = 0; flags < 16; ++flags)
      check({.m = sizes.m,
             .n = sizes.n,
             .k = sizes.k,
             .transpose_a = (flags & 1) != 0,
             .transpose_b = (flags & 2) != 0,
             .factors = factors,
             .result = result,
             .alpha = (flags & 3) == 2 ? 1.0F : -0.37F,
             .sum = static_cast<MatmulCase::Sum>(flags >> 2),
             .gap_a = gaps.a,
             .gap_b = gaps.b,
             .gap_c = gaps.c});
}

// The last is long enough for steps of the inner dimension.
constexpr Sizes kSizes[] = {{1, 1, 1},     {1, 131, 16},    {7, 16, 131},
                            {131, 1, 33},  {16, 576, 64},   {64, 16, 576},
                            {33, 65, 257}, {129, 200, 300}, {40, 24, 1100}};

TEST(CpuMatmul, EveryTransposeAndSum) {
  for (const Sizes& sizes : kSizes) check_every_form(sizes, kNoGaps);
}

// As few rows as a kernel takes without packing, and one more.
TEST(CpuMatmul, FewRows) {
  for (int64_t rows = 1; rows <= 17; ++rows) check_every_form({rows, 103, 77}, kNoGaps);
  for (const int64_t rows : {3, 7, 11, 16})
    for (const Gaps& gaps : {Gaps{1, 0, 1}, Gaps{32, 3, 32}})
      check_every_form({rows, 29, 96}, gaps);
}

// Of products with a dimension of a few dozen: those of LoRA, odd ends in every dimension, and
// tokens too few to be one.
constexpr Sizes kThinSizes[] = {{16, 576, 2048}, {192, 16, 2047}, {300, 16, 4100}, {2048, 192, 16},
                                {257, 300, 8},   {129, 277, 29},  {130, 513, 33},  {2047, 16, 192},
                                {161, 13, 577},  {8, 130, 1030},  {33, 145, 257},  {1, 576, 16},
                                {17, 16, 576},   {1, 16, 1536},   {16, 192, 17},   {150, 64, 131}};

TEST(CpuMatmul, ThinProducts) {
  for (const Sizes& sizes : kThinSizes) check_every_form(sizes, kNoGaps);
}

// Odd strides, and strides of whole lines.
constexpr Gaps kGaps[] = {{1, 0, 1}, {32, 3, 32}};

TEST(CpuMatmul, ThinProductsWithGaps) {
  for (const Sizes& sizes : {Sizes{24, 145, 257}, Sizes{145, 257, 24}, Sizes{257, 24, 145},
                             Sizes{130, 16, 129}, Sizes{16, 160, 192}})
    for (const Gaps& gaps : kGaps) check_every_form(sizes, gaps);
}

// Wide in every dimension: odd ends, several blocks of rows, several parts of columns, several
// steps of the inner dimension, and rows at a distance of a power of two.
constexpr Sizes kWideSizes[] = {{32, 32, 32},   {33, 65, 47},    {64, 96, 128},  {290, 70, 100},
                                {161, 40, 131}, {160, 40, 1024}, {41, 700, 1100}};

TEST(CpuMatmul, WideProducts) {
  for (const Sizes& sizes : kWideSizes)
    check_every_form(sizes, sizes.m % 2 == 0 ? kNoGaps : Gaps{5, 5, 5});
}

// Ranks of less than a step, one, and several; both orders of the low-rank factor; scales that keep
// its bits.
TEST(CpuMatmul, AugmentedProducts) {
  if (detect_isa() != Isa::amx) GTEST_SKIP() << "only tiles make both products in one call";
  // The last has several parts of columns.
  for (const Sizes& sizes : {Sizes{130, 160, 200}, Sizes{289, 145, 131}, Sizes{40, 700, 1100}})
    for (const int64_t rank : {1, 16, 33, 64})
      for (int flags = 0; flags < 16; ++flags)
        check({.m = sizes.m,
               .n = sizes.n,
               .k = sizes.k,
               .transpose_a = false,
               .transpose_b = (flags & 1) != 0,
               .factors = DType::bf16,
               .result = rank == 33 ? DType::f32 : DType::bf16,
               .alpha = rank == 16 ? 1.0F : -0.37F,
               .sum = static_cast<MatmulCase::Sum>(flags >> 2),
               .gap_a = rank == 64 ? 3 : 0,
               .gap_b = rank == 64 ? 5 : 0,
               .gap_c = rank == 64 ? 7 : 0,
               .rank = rank,
               .transpose_low = (flags & 2) != 0,
               .low_alpha = rank == 16 ? 2.0F : 0.37F});
}

TEST(CpuMatmul, RefusesAnAugmentationThatScalingWouldRound) {
  Matrix a = random_matrix(160, 160, DType::bf16);
  Matrix low_a = random_matrix(160, 16, DType::bf16);
  Matrix low_b = random_matrix(16, 160, DType::bf16);
  for (const float alpha : {0.25F, 3.0F}) {
    OneOperation operation;
    operation.emit(program::Matmul{.augmented = true, .low_alpha = alpha},
                   {operation.tensor(a), operation.tensor(a), operation.tensor(low_a),
                    operation.tensor(low_b)},
                   {operation.tensor(a)}, {});
    EXPECT_EQ(backend().runs(operation.view()), alpha == 0.25F && detect_isa() == Isa::amx);
  }
}

TEST(CpuMatmul, OperandsWithGaps) {
  for (const Gaps& gaps : kGaps) check_every_form({37, 48, 29}, gaps);
  // Lines of one element: their distance alone tells rows from columns.
  for (const Sizes& sizes : {Sizes{1, 15, 63}, Sizes{15, 1, 63}, Sizes{1, 1, 63}, Sizes{17, 15, 1}})
    for (const Gaps& gaps : {Gaps{2, 2, 2}, Gaps{1, 3, 0}}) check_every_form(sizes, gaps);
}

// Whether the operand was copied; it is noted once.
bool is_copied(const Trace& trace, std::string_view name) {
  std::vector<int64_t> noted;
  for (const auto& [known, value] : trace.decisions)
    if (known == name) noted.push_back(value);
  EXPECT_EQ(noted.size(), 1U) << name;
  return noted == std::vector<int64_t>{1};
}

// The library's product copies what has gaps, and nothing else: that is decided, priced and noted,
// and another decision refused.
TEST(CpuMatmul, CopiesOfOperandsWithGapsAreDecided) {
  const bool by_library = detect_isa() >= Isa::v4;
  for (int gaps = 0; gaps < 16; ++gaps)
    for (const auto sum : {MatmulCase::nothing, MatmulCase::addend, MatmulCase::accumulate}) {
      SCOPED_TRACE(fmt::format("gaps {} sum {}", gaps, static_cast<int>(sum)));
      const auto gap = [&](int bit) { return (gaps >> bit & 1) * 3; };
      Matrix a = random_matrix(40, 30, DType::f32, gap(0));
      Matrix b = random_matrix(30, 50, DType::f32, gap(1));
      Matrix addend = random_matrix(40, 50, DType::f32, gap(2));
      Matrix c = random_matrix(40, 50, DType::f32, gap(3));
      program::Matmul matmul{.addend = sum == MatmulCase::addend,
                             .accumulate = sum == MatmulCase::accumulate};
      OneOperation operation;
      std::vector<TensorId> reads{operation.tensor(a), operation.tensor(b)};
      std::vector<Buffer> buffers{a.buffer(), b.buffer()};
      if (matmul.addend) {
        reads.push_back(operation.tensor(addend));
        buffers.push_back(addend.buffer());
      }
      const TensorId to = operation.tensor(c);
      using Ids = std::vector<TensorId>;
      operation.emit(matmul, reads, matmul.accumulate ? Ids{} : Ids{to},
                     matmul.accumulate ? Ids{to} : Ids{});
      using Buffers = std::vector<Buffer>;
      Trace trace;
      operation.run(buffers, matmul.accumulate ? Buffers{} : Buffers{c.buffer()},
                    matmul.accumulate ? Buffers{c.buffer()} : Buffers{}, &trace);
      auto& decided = operation.attributes().get<program::Matmul>();
      const program::Cost priced = program::cost(operation.view(), {});
      double copied = 0;
      const auto expect = [&](bool program::DenseOperands::*operand, const char* name, bool has_gap,
                              double bytes) {
        EXPECT_EQ(decided.dense.*operand, by_library && has_gap) << name;
        EXPECT_EQ(is_copied(trace, name), decided.dense.*operand) << name;
        if (decided.dense.*operand) copied += bytes;
        decided.dense.*operand = !(decided.dense.*operand);
        EXPECT_TRUE(dies([&] { backend().prepare(operation.view()); }, "copies other operands"))
            << name;
        decided.dense.*operand = !(decided.dense.*operand);
      };
      expect(&program::DenseOperands::a, "dense_a", gap(0) > 0, 2 * 4 * 40 * 30);
      expect(&program::DenseOperands::b, "dense_b", gap(1) > 0, 2 * 4 * 30 * 50);
      if (matmul.addend)
        expect(&program::DenseOperands::addend, "dense_addend", gap(2) > 0, 2 * 4 * 40 * 50);
      expect(&program::DenseOperands::c, "dense_c", gap(3) > 0,
             (matmul.accumulate ? 4 : 2) * 4 * 40 * 50);
      EXPECT_EQ(priced.serial_bytes, copied);
      decided.dense = {};
      EXPECT_EQ(priced.bytes - program::cost(operation.view(), {}).bytes, copied);
    }
}

// That the addend is what c held before is known of the program, as the one place of both.
TEST(CpuMatmul, RefusesAnAddendThatSharesAPartOfTheResult) {
  Matrix a = random_matrix(8, 8, DType::f32);
  OneOperation operation;
  const TensorId factor = operation.tensor(a);
  const TensorId whole = operation.tensor(empty_matrix(9, 8, DType::f32));
  operation.emit(program::Matmul{.addend = true}, {factor, factor, operation.rows_of(whole, 0, 8)},
                 {operation.rows_of(whole, 0, 8)}, {});
  EXPECT_NE(backend().prepare(operation.view()), nullptr);
  EXPECT_TRUE(dies(
      [&] {
        OneOperation other;
        const TensorId left = other.tensor(a);
        const TensorId rows = other.tensor(empty_matrix(9, 8, DType::f32));
        other.emit(program::Matmul{.addend = true}, {left, left, other.rows_of(rows, 1, 8)},
                   {other.rows_of(rows, 0, 8)}, {});
      },
      "shares bytes of c"));
}

TEST(CpuMatmul, StochasticAccumulationRoundsByItsBits) {
  if (!has_bf16_products(detect_isa())) GTEST_SKIP() << "no bf16 products on this machine";
  // 1 MiB of fp32 rows is 1024 of these: one block and a rest.
  constexpr int64_t kRows = 1100;
  constexpr int64_t kColumns = 256;
  constexpr int64_t kInner = 8;
  Matrix a = random_matrix(kInner, kRows, DType::bf16);
  Matrix b = random_matrix(kInner, kColumns, DType::bf16);
  Matrix c = random_matrix(kRows, kColumns, DType::bf16);
  const Matrix before = c;
  OneOperation operation;
  const program::Matmul matmul{
      .transpose_a = true, .accumulate = true, .stochastic = true, .seed = 11, .site = 3};
  std::vector<int32_t> random{5, 2};
  Buffer random_buffer;
  random_buffer.data = reinterpret_cast<std::byte*>(random.data());
  random_buffer.dtype = DType::i32;
  random_buffer.shape = Shape{2};
  random_buffer.strides = {1};
  operation.emit(matmul,
                 {operation.tensor(a), operation.tensor(b), operation.vector(2, DType::i32)}, {},
                 {operation.tensor(c)});
  Trace trace;
  operation.run({a.buffer(), b.buffer(), random_buffer}, {}, {c.buffer()}, &trace);
  // Blocks of rows of a transposed factor have gaps.
  EXPECT_EQ(is_copied(trace, "dense_a"), operation.attributes().get<program::Matmul>().dense.a);
  const base::PhiloxKey key =
      stream_key({.seed = 11, .site = 3, .step = 5, .first_row = 2}, RandomPurpose::rounding);
  int64_t different = 0;
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < kInner; ++p)
        sum += static_cast<float>(a.at(p, i)) * static_cast<float>(b.at(p, j));
      const base::BFloat16 wanted = round_stochastically(sum + static_cast<float>(before.at(i, j)),
                                                         rounding_bits(key, 0, i * kColumns + j));
      if (static_cast<double>(base::to_float(wanted)) != c.at(i, j)) ++different;
    }
  // Another order of fp32 summation turns some roundings: 2^-8 of those that differ in the last
  // place.
  EXPECT_LE(different, kRows * kColumns / 1000);
}

TEST(CpuMatmul, RefusesBf16WhereTheProcessorHasNone) {
  Matrix a = random_matrix(4, 4, DType::bf16);
  OneOperation operation;
  operation.emit(program::Matmul{}, {operation.tensor(a), operation.tensor(a)},
                 {operation.tensor(a)}, {});
  EXPECT_EQ(backend().runs(operation.view()), has_bf16_products(detect_isa()));
}

TEST(CpuBackendDeathTest, PreparingWithLessWorkspaceThanAskedFails) {
  Matrix a = random_matrix(64, 256, DType::f32);
  OneOperation operation;
  operation.emit(program::Matmul{.transpose_b = true}, {operation.tensor(a), operation.tensor(a)},
                 {operation.tensor(empty_matrix(64, 64, DType::f32))}, {});
  operation.shrink_workspace();
  EXPECT_TRUE(dies([&] { backend().prepare(operation.view()); }, "matmul now asks for"));
}

// What a sequence's token is must not depend on the sequences next to it.
TEST(CpuMatmul, FewRowsEachHaveTheBitsOfTheRowAlone) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    if (dtype == DType::bf16 && !has_bf16_products(detect_isa())) continue;
    const int64_t most = dtype == DType::bf16 && detect_isa() == Isa::v4_bf16 ? 16 : 4;
    const Matrix all = random_matrix(most, 77, dtype);
    Matrix w = random_matrix(103, 77, dtype);
    const auto multiply = [&](int64_t first, int64_t rows) {
      Matrix x = empty_matrix(rows, all.columns, dtype);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < all.columns; ++j)
          x.set(i, j, static_cast<float>(all.at(first + i, j)));
      Matrix y = empty_matrix(rows, w.rows, DType::f32);
      OneOperation operation;
      operation.emit(program::Matmul{.transpose_b = true},
                     {operation.tensor(x), operation.tensor(w)}, {operation.tensor(y)}, {});
      operation.run({x.buffer(), w.buffer()}, {y.buffer()}, {});
      return y;
    };
    std::vector<Matrix> alone;
    for (int64_t row = 0; row < most; ++row) alone.push_back(multiply(row, 1));
    for (int64_t rows = 2; rows <= most; ++rows) {
      const Matrix together = multiply(0, rows);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t j = 0; j < w.rows; ++j)
          ASSERT_EQ(together.at(row, j), alone[static_cast<size_t>(row)].at(0, j))
              << rows << " rows, row " << row << ", output " << j;
    }
  }
}

}  // namespace
}  // namespace snug::backends::cpu
