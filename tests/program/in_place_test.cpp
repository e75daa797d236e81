// Where kinds may work in place, and which kinds passes treat in their own way.
#include <gtest/gtest.h>

#include "program/kind.h"
#include "program/text.h"

namespace snug::program {
namespace {

using Pairs = std::vector<std::pair<int, int>>;

Pairs pairs_of(Attributes attributes) {
  Operation operation;
  operation.attributes = std::move(attributes);
  return in_place_pairs(operation);
}

TEST(InPlace, ListsEachKindsPairs) {
  EXPECT_EQ(pairs_of(Add{}), (Pairs{{0, 0}, {0, 1}}));
  EXPECT_EQ(pairs_of(AddBias{}), (Pairs{{0, 0}}));
  EXPECT_EQ(pairs_of(Dropout{}), (Pairs{{0, 0}}));
  EXPECT_EQ(pairs_of(Rope{}), (Pairs{{0, 0}}));
  EXPECT_EQ(pairs_of(SiluMul{}), (Pairs{{0, 0}, {0, 1}}));
  EXPECT_EQ(pairs_of(SiluMulGrad{}), (Pairs{{0, 1}, {1, 2}}));
  EXPECT_EQ(pairs_of(GeluMul{}), (Pairs{{0, 0}, {0, 1}}));
  EXPECT_EQ(pairs_of(GeluMulGrad{}), (Pairs{{0, 1}, {1, 2}}));
  EXPECT_EQ(pairs_of(Scale{}), (Pairs{{0, 0}}));
  EXPECT_EQ(pairs_of(Relu{}), (Pairs{{0, 0}}));
  EXPECT_EQ(pairs_of(ReluGrad{}), (Pairs{{0, 0}, {0, 1}}));
  EXPECT_EQ(pairs_of(Softcap{}), (Pairs{{0, 0}}));
  EXPECT_EQ(pairs_of(LayerNorm{}), (Pairs{{0, 0}}));
  EXPECT_EQ(pairs_of(LayerNormGrad{.addend = true}), (Pairs{{0, 3}}));
  EXPECT_EQ(pairs_of(Matmul{}), Pairs{});
  Matmul matmul;
  matmul.addend = true;
  EXPECT_EQ(pairs_of(matmul), (Pairs{{0, 2}}));
  EXPECT_EQ(pairs_of(RmsNormGrad{}), Pairs{});
  RmsNormGrad norm;
  norm.addend = true;
  EXPECT_EQ(pairs_of(norm), (Pairs{{0, 3}}));
  EXPECT_EQ(pairs_of(Attention{}), Pairs{});
  EXPECT_EQ(pairs_of(RmsNorm{}), (Pairs{{0, 0}}));
}

TEST(Kinds, NamesReadBack) {
  for (int i = 0; i < kKindCount; ++i) {
    const auto kind = static_cast<Kind>(i);
    EXPECT_EQ(base::from_word<Kind>(name_of(kind)), kind);
    EXPECT_EQ(default_attributes(kind).index(), static_cast<size_t>(i));
  }
  EXPECT_FALSE(base::from_word<Kind>("matmull").has_value());
  EXPECT_TRUE(traits_of(Kind::linear_cross_entropy).is_fused);
  EXPECT_TRUE(traits_of(Kind::linear_cross_entropy_train).is_fused);
  EXPECT_FALSE(traits_of(Kind::attention).is_fused);
  EXPECT_TRUE(traits_of(Kind::linear_cross_entropy).has_training_form);
  EXPECT_FALSE(traits_of(Kind::cross_entropy).has_training_form);
}

}  // namespace
}  // namespace snug::program
