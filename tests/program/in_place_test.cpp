// Where kinds may work in place, and which kinds passes treat in their own way.
#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "program/kinds/attention/attention.h"
#include "program/kinds/attention/rope.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/gelu_mul.h"
#include "program/kinds/elementwise/multiply.h"
#include "program/kinds/elementwise/relu.h"
#include "program/kinds/elementwise/sigmoid_mul.h"
#include "program/kinds/elementwise/silu_mul.h"
#include "program/kinds/elementwise/softcap.h"
#include "program/kinds/elementwise/xielu.h"
#include "program/kinds/kind.h"
#include "program/kinds/norm/layer_norm.h"
#include "program/kinds/norm/rms_norm.h"
#include "program/kinds/product/matmul.h"
#include "program/text/text.h"

namespace snug::program {
namespace {

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

Pairs pairs_of(Attributes attributes) {
  Operation operation;
  operation.attributes = std::move(attributes);
  Pairs pairs;
  for (const InPlacePair& pair : in_place_pairs(operation))
    pairs.emplace_back(pair.output.text, pair.input.text);
  return pairs;
}

TEST(InPlace, ListsEachKindsPairs) {
  EXPECT_EQ(pairs_of(Add{}), (Pairs{{"c", "a"}, {"c", "b"}}));
  EXPECT_EQ(pairs_of(AddBias{}), (Pairs{{"y", "x"}}));
  EXPECT_EQ(pairs_of(Dropout{}), (Pairs{{"y", "x"}}));
  EXPECT_EQ(pairs_of(Rope{}), (Pairs{{"y", "x"}}));
  EXPECT_EQ(pairs_of(SigmoidMul{}), (Pairs{{"y", "gate"}, {"y", "up"}}));
  EXPECT_EQ(pairs_of(SigmoidMulGrad{}), (Pairs{{"dgate", "gate"}, {"dup", "up"}}));
  EXPECT_EQ(pairs_of(SiluMul{}), (Pairs{{"y", "gate"}, {"y", "up"}}));
  EXPECT_EQ(pairs_of(SiluMulGrad{}), (Pairs{{"dgate", "gate"}, {"dup", "up"}}));
  EXPECT_EQ(pairs_of(GeluMul{}), (Pairs{{"y", "gate"}, {"y", "up"}}));
  EXPECT_EQ(pairs_of(GeluMulGrad{}), (Pairs{{"dgate", "gate"}, {"dup", "up"}}));
  EXPECT_EQ(pairs_of(Scale{}), (Pairs{{"y", "x"}}));
  EXPECT_EQ(pairs_of(Relu{}), (Pairs{{"y", "x"}}));
  EXPECT_EQ(pairs_of(ReluGrad{}), (Pairs{{"dx", "dy"}, {"dx", "y"}}));
  EXPECT_EQ(pairs_of(Xielu{}), (Pairs{{"y", "x"}}));
  EXPECT_EQ(pairs_of(XieluGrad{}), (Pairs{{"dx", "dy"}, {"dx", "x"}}));
  EXPECT_EQ(pairs_of(XieluSlope{}), (Pairs{{"slope", "x"}}));
  EXPECT_EQ(pairs_of(Multiply{}), (Pairs{{"y", "gate"}, {"y", "up"}}));
  EXPECT_EQ(pairs_of(MultiplyGrad{}), (Pairs{{"dgate", "gate"}, {"dup", "up"}}));
  EXPECT_EQ(pairs_of(Softcap{}), (Pairs{{"y", "x"}}));
  EXPECT_EQ(pairs_of(LayerNorm{}), (Pairs{{"y", "x"}}));
  EXPECT_EQ(pairs_of(LayerNormGrad{.addend = true}), (Pairs{{"dx", "addend"}}));
  EXPECT_EQ(pairs_of(Matmul{}), Pairs{});
  Matmul matmul;
  matmul.addend = true;
  EXPECT_EQ(pairs_of(matmul), (Pairs{{"c", "addend"}}));
  matmul.addend = false;
  matmul.accumulate = true;
  EXPECT_EQ(pairs_of(matmul), Pairs{});
  EXPECT_EQ(pairs_of(RmsNormGrad{}), Pairs{});
  RmsNormGrad norm;
  norm.addend = true;
  EXPECT_EQ(pairs_of(norm), (Pairs{{"dx", "addend"}}));
  EXPECT_EQ(pairs_of(Attention{}), Pairs{});
  EXPECT_EQ(pairs_of(RmsNorm{}), (Pairs{{"y", "x"}}));
}

TEST(Kinds, NamesReadBack) {
  for (int i = 0; i < kKindCount; ++i) {
    const auto kind = static_cast<Kind>(i);
    EXPECT_EQ(base::from_word<Kind>(name_of(kind)), kind);
    EXPECT_EQ(default_attributes(kind).kind(), kind);
  }
  EXPECT_FALSE(base::from_word<Kind>("matmull").has_value());
}

TEST(Kinds, SayWhatPassesDoWithThem) {
  EXPECT_TRUE(has_expansion(Kind::linear_cross_entropy));
  EXPECT_TRUE(has_expansion(Kind::linear_cross_entropy_train));
  EXPECT_TRUE(has_expansion(Kind::matmul_nf4));
  EXPECT_FALSE(has_expansion(Kind::attention));
  EXPECT_TRUE(traits_of(Kind::linear_cross_entropy).has_training_form);
  EXPECT_FALSE(traits_of(Kind::cross_entropy).has_training_form);
  EXPECT_TRUE(traits_of(Kind::gelu).is_cheap());
  EXPECT_TRUE(traits_of(Kind::dropout).is_cheap());
  EXPECT_FALSE(traits_of(Kind::attention).is_cheap());
  EXPECT_FALSE(traits_of(Kind::row_norms).is_cheap());
  EXPECT_TRUE(traits_of(Kind::muon).is_of_optimizer());
  EXPECT_TRUE(traits_of(Kind::muon_step).is_of_optimizer());
  EXPECT_FALSE(traits_of(Kind::all_reduce).is_of_optimizer());
  EXPECT_TRUE(traits_of(Kind::linear_cross_entropy).is_loss());
  EXPECT_TRUE(traits_of(Kind::balance_loss).is_loss());
  EXPECT_FALSE(traits_of(Kind::cross_entropy_grad).is_loss());
}

// What a trait promises of a kind's functions.
TEST(Kinds, HaveTheFunctionsThatTheirTraitsAskFor) {
  for (int i = 0; i < kKindCount; ++i) {
    const auto kind = static_cast<Kind>(i);
    SCOPED_TRACE(name_of(kind));
    const Traits& traits = traits_of(kind);
    EXPECT_TRUE(traits.performer != Performer::expansion || has_expansion(kind));
    EXPECT_TRUE(traits.performer != Performer::runtime || traits.copying == Copying::none);
    EXPECT_TRUE(!(traits.has_training_form || traits.is_loss()) || has_derivative(kind));
  }
}

}  // namespace
}  // namespace snug::program
