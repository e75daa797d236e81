// Who makes a product on which instruction set, which any machine can tell; and that oneDNN never
// has tiles.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/product/onednn_matmul.h"
#include "backends/cpu/product/product.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

using base::DType;

constexpr Isa kEvery[] = {Isa::v2, Isa::v3, Isa::v4, Isa::v4_bf16, Isa::amx};

MatmulSpec spec_of(int64_t m, int64_t n, int64_t k, DType type, bool transpose_b) {
  MatmulSpec spec{.m = m, .n = n, .k = k, .a_type = type, .b_type = type, .c_type = type};
  spec.a_strides[0] = k;
  spec.b_strides[0] = transpose_b ? 1 : n;
  spec.b_strides[1] = transpose_b ? k : 1;
  spec.c_stride = n;
  return spec;
}

TEST(ProductWays, OneDnnNeverHasTiles) {
  for (const Isa isa : kEvery) EXPECT_EQ(onednn_isa(isa), std::min(isa, Isa::v4_bf16));
  open_context(1);
  EXPECT_FALSE(onednn_has_tiles());
  // The first call of a process counts.
  limit_onednn(Isa::amx);
  EXPECT_FALSE(onednn_has_tiles());
}

struct Row {
  int64_t m, n, k;
  bool transpose_b;
  DType type;
  ProductAlgorithm v3, v4, v4_bf16, amx;
};

constexpr DType kF32 = DType::f32;
constexpr DType kBf16 = DType::bf16;

// Bf16 on levels that do not multiply it is refused before anybody asks.
constexpr Row kRows[] = {{.m = 512,
                          .n = 576,
                          .k = 576,
                          .transpose_b = true,
                          .type = kF32,
                          .v3 = ProductAlgorithm::blocked,
                          .v4 = ProductAlgorithm::library,
                          .v4_bf16 = ProductAlgorithm::library,
                          .amx = ProductAlgorithm::library},
                         {.m = 4,
                          .n = 576,
                          .k = 576,
                          .transpose_b = true,
                          .type = kF32,
                          .v3 = ProductAlgorithm::few_rows,
                          .v4 = ProductAlgorithm::few_rows,
                          .v4_bf16 = ProductAlgorithm::few_rows,
                          .amx = ProductAlgorithm::few_rows},
                         {.m = 16,
                          .n = 576,
                          .k = 576,
                          .transpose_b = true,
                          .type = kBf16,
                          .v3 = ProductAlgorithm::blocked,
                          .v4 = ProductAlgorithm::library,
                          .v4_bf16 = ProductAlgorithm::few_rows,
                          .amx = ProductAlgorithm::thin},
                         {.m = 17,
                          .n = 576,
                          .k = 576,
                          .transpose_b = true,
                          .type = kBf16,
                          .v3 = ProductAlgorithm::blocked,
                          .v4 = ProductAlgorithm::library,
                          .v4_bf16 = ProductAlgorithm::library,
                          .amx = ProductAlgorithm::thin},
                         {.m = 512,
                          .n = 576,
                          .k = 576,
                          .transpose_b = true,
                          .type = kBf16,
                          .v3 = ProductAlgorithm::blocked,
                          .v4 = ProductAlgorithm::library,
                          .v4_bf16 = ProductAlgorithm::library,
                          .amx = ProductAlgorithm::wide},
                         {.m = 33,
                          .n = 32,
                          .k = 63,
                          .transpose_b = false,
                          .type = kBf16,
                          .v3 = ProductAlgorithm::blocked,
                          .v4 = ProductAlgorithm::library,
                          .v4_bf16 = ProductAlgorithm::library,
                          .amx = ProductAlgorithm::wide},
                         {.m = 512,
                          .n = 16,
                          .k = 576,
                          .transpose_b = true,
                          .type = kBf16,
                          .v3 = ProductAlgorithm::blocked,
                          .v4 = ProductAlgorithm::library,
                          .v4_bf16 = ProductAlgorithm::library,
                          .amx = ProductAlgorithm::thin},
                         {.m = 512,
                          .n = 576,
                          .k = 16,
                          .transpose_b = true,
                          .type = kBf16,
                          .v3 = ProductAlgorithm::blocked,
                          .v4 = ProductAlgorithm::library,
                          .v4_bf16 = ProductAlgorithm::library,
                          .amx = ProductAlgorithm::thin},
                         {.m = 1,
                          .n = 576,
                          .k = 63,
                          .transpose_b = true,
                          .type = kBf16,
                          .v3 = ProductAlgorithm::few_rows,
                          .v4 = ProductAlgorithm::few_rows,
                          .v4_bf16 = ProductAlgorithm::few_rows,
                          .amx = ProductAlgorithm::few_rows},
                         // A hidden size of 63 and an adapter of 16, of 4: tiles ended these.
                         {.m = 47,
                          .n = 16,
                          .k = 63,
                          .transpose_b = true,
                          .type = kBf16,
                          .v3 = ProductAlgorithm::blocked,
                          .v4 = ProductAlgorithm::library,
                          .v4_bf16 = ProductAlgorithm::library,
                          .amx = ProductAlgorithm::library},
                         {.m = 130,
                          .n = 4,
                          .k = 63,
                          .transpose_b = false,
                          .type = kBf16,
                          .v3 = ProductAlgorithm::blocked,
                          .v4 = ProductAlgorithm::library,
                          .v4_bf16 = ProductAlgorithm::library,
                          .amx = ProductAlgorithm::library},
                         {.m = 130,
                          .n = 63,
                          .k = 16,
                          .transpose_b = false,
                          .type = kBf16,
                          .v3 = ProductAlgorithm::blocked,
                          .v4 = ProductAlgorithm::library,
                          .v4_bf16 = ProductAlgorithm::library,
                          .amx = ProductAlgorithm::library}};

TEST(ProductWays, DependOnShapeTypesAndInstructionSet) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(
        fmt::format("({} x {}) ({} x {}) {}", row.m, row.k, row.k, row.n, base::name_of(row.type)));
    const MatmulSpec spec = spec_of(row.m, row.n, row.k, row.type, row.transpose_b);
    EXPECT_EQ(algorithm_of(spec, context_of(Isa::v3, 2)), row.v3);
    EXPECT_EQ(algorithm_of(spec, context_of(Isa::v4, 2)), row.v4);
    EXPECT_EQ(algorithm_of(spec, context_of(Isa::v4_bf16, 2)), row.v4_bf16);
    EXPECT_EQ(algorithm_of(spec, context_of(Isa::amx, 2)), row.amx);
  }
}

// So that AVX-512 costs little: on tiles the library is left with bf16 products of which one
// dimension is below a tile's.
TEST(ProductWays, OnTilesTheLibraryHasOnlyWhatIsSmallerThanATile) {
  const CpuContext tiles = context_of(Isa::amx, 2);
  for (const int64_t m : {1, 7, 16, 31, 32, 33, 63, 128, 1000})
    for (const int64_t n : {1, 7, 16, 31, 32, 33, 63, 128, 1000})
      for (const int64_t k : {1, 7, 16, 31, 32, 33, 63, 128, 1000})
        if (algorithm_of(spec_of(m, n, k, kBf16, false), tiles) == ProductAlgorithm::library) {
          EXPECT_LT(std::min({m, n, k}), 32) << m << " " << n << " " << k;
        }
}

}  // namespace
}  // namespace snug::backends::cpu
