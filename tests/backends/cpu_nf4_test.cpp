// What fixed point in a product with NF4 codes could get wrong: elements of very different sizes,
// and elements that are no numbers. SNUG_ISA selects the path that is tested.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "one_operation.h"
#include "program/kinds/product/nf4.h"

namespace snug::backends::cpu {
namespace {

constexpr int64_t kOut = 11;  // whole fours and pairs of outputs, and a rest
constexpr int64_t kIn = 2 * program::kNf4BlockSize;
constexpr auto kZero = std::byte{0x77};  // two codes of 0

// A product of some rows, most often one, with weights whose first block in each output is `first`
// throughout; the second takes each code in turn. All scales are 1.
class Nf4Row {
 public:
  Nf4Row(Matrix x, std::byte first) : Nf4Row(x, first, x.dtype) {}
  Nf4Row(Matrix x, std::byte first, DType result)
      : x_(std::move(x)), y_(empty_matrix(x_.rows, kOut, result)) {
    for (int64_t i = 0; i < kOut * kIn / 2; ++i)
      codes_.push_back(i % (kIn / 2) < kIn / 4 ? first : static_cast<std::byte>(37 * i));
    const auto codes = operation_.tensor({codes_, kOut * kIn / 2, 1, 0, DType::u8});
    const auto absmax = operation_.vector(2 * kOut, DType::f32);
    operation_.emit(program::MatmulNf4{}, {operation_.tensor(x_), codes, absmax},
                    {operation_.tensor(y_)}, {});
  }
  const Matrix& multiply() {
    const auto buffer = [](void* data, const Shape& shape, DType dtype) {
      return Buffer{static_cast<std::byte*>(data), dtype, shape, program::dense_strides(shape)};
    };
    operation_.run({x_.buffer(), buffer(codes_.data(), Shape{kOut * kIn / 2, 1}, DType::u8),
                    buffer(absmax_.data(), Shape{2 * kOut}, DType::f32)},
                   {y_.buffer()}, {});
    return y_;
  }
  double weight(int64_t output, int64_t i) const {
    const auto byte = std::to_integer<unsigned>(codes_[static_cast<size_t>(output * kIn + i) / 2]);
    return formats::kNf4Codes[i % 2 == 0 ? byte >> 4 : byte & 15U];
  }

 private:
  Matrix x_;
  Matrix y_;
  std::vector<std::byte> codes_;
  std::vector<float> absmax_ = std::vector<float>(2 * kOut, 1.0F);
  OneOperation operation_;
};

TEST(MatmulNf4, LargeElementsLeaveTheOtherBlocksTheirDigits) {
  for (const auto& [dtype, result] : type_pairs()) {
    if (dtype != result) continue;
    Matrix x = random_matrix(1, kIn, dtype);
    for (int64_t i = 0; i < kIn / 2; ++i) x.set(0, i, 1e6F);
    Nf4Row row(x, kZero);
    Values expected(kOut);
    for (int64_t output = 0; output < kOut; ++output)
      for (int64_t i = 0; i < kIn; ++i)
        expected[static_cast<size_t>(output)] += x.at(0, i) * row.weight(output, i);
    EXPECT_LE(error_against(expected, row.multiply()), kTolerance[dtype == DType::bf16]);
  }
}

TEST(MatmulNf4, RowsHaveTheBitsOfTheRowAlone) {
  const bool is_fixed = detect_isa() >= Isa::v4_bf16;
  for (const auto& [dtype, result] : type_pairs()) {
    const DType y_type = result;
    // On AMX tiles more than four rows are a product of another form.
    const int64_t most = dtype == DType::bf16 && is_fixed && detect_isa() < Isa::amx ? 16 : 4;
    const Matrix all = random_matrix(most, kIn, dtype);
    const auto multiply = [&](int64_t first, int64_t rows) {
      Matrix x = empty_matrix(rows, kIn, dtype);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < kIn; ++j) x.set(i, j, static_cast<float>(all.at(first + i, j)));
      Nf4Row product(std::move(x), std::byte{0x3a}, y_type);
      return product.multiply();
    };
    std::vector<Matrix> alone;
    for (int64_t row = 0; row < most; ++row) alone.push_back(multiply(row, 1));
    for (int64_t rows = 2; rows <= most; ++rows) {
      const Matrix together = multiply(0, rows);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t j = 0; j < kOut; ++j)
          ASSERT_EQ(together.at(row, j), alone[static_cast<size_t>(row)].at(0, j))
              << rows << " rows, row " << row << ", output " << j;
    }
  }
}

// An element takes digits of the others of its block: each is off by at most half of the largest
// over 2^14, which shows in outputs that multiply the largest by 0.
TEST(MatmulNf4, ALargeElementLeavesItsOwnBlockTheDigitsOfItsSize) {
  constexpr float kLargest = 1e4F;
  const double bound = 2 * std::sqrt(program::kNf4BlockSize / 2) * kLargest / (1 << 15);
  Matrix x = random_matrix(1, kIn, DType::bf16);
  x.set(0, 0, kLargest);
  Nf4Row row(x, std::byte{0x7f});  // a code of 0, then one of 1
  const Matrix& y = row.multiply();
  for (int64_t output = 0; output < kOut; ++output) {
    double expected = 0;
    for (int64_t i = 0; i < kIn; ++i) expected += x.at(0, i) * row.weight(output, i);
    EXPECT_NEAR(y.at(0, output), expected, bound) << output;
  }
}

TEST(MatmulNf4, WhatIsNoNumberStaysNone) {
  for (const auto& [dtype, result] : type_pairs())
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      if (dtype != result) continue;
      Matrix x = random_matrix(1, kIn, dtype);
      x.set(0, 5, bad);
      const Matrix y = Nf4Row(x, std::byte{0xff}).multiply();
      for (int64_t output = 0; output < kOut; ++output)
        EXPECT_FALSE(std::isfinite(y.at(0, output))) << bad;
    }
}

}  // namespace
}  // namespace snug::backends::cpu
