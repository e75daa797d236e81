// The passes that rewrite a program, each on the smallest program that shows it.
#include <gtest/gtest.h>

#include "../base/captured_stream.h"
#include "passes/gradient/differentiate.h"
#include "passes/gradient/recompute.h"
#include "passes/gradient/update_in_backward.h"
#include "passes/lowering/lower.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/product/matmul.h"
#include "program/kinds/product/nf4.h"
#include "test_target.h"
#include "text_in_text_out.h"

namespace snug::passes {
namespace {

using program::Program;
using program::TensorId;

// Runs every kind; augmented products or not.
TestTarget any_kind(bool augments) {
  return TestTarget([augments](const program::OperationView& view) {
    const auto* matmul = view.operation.attributes.get_if<program::Matmul>();
    return matmul == nullptr || !matmul->augmented || augments;
  });
}

size_t count(const std::string& text, std::string_view word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// Two linears with a norm between, and the head's loss; `a` and `b` may train.
constexpr std::string_view kForward = R"(program forward
tensor x (8, 4) f32 batch step
tensor w.norm (4) f32 weight run
tensor a (4, 4) f32 weight run
tensor b (4, 4) f32 weight run
tensor head (6, 4) f32 weight run
tensor targets (8) i32 batch step
tensor inverse_tokens (1) f32 scalar step
tensor losses (8) f32 scalar step
tensor loss (1) f32 scalar step
h (8, 4) f32 = matmul(x, a) {transpose_b}
n (8, 4) f32 = rms_norm(h, w.norm)
y (8, 4) f32 = matmul(n, b) {transpose_b}
z (8, 4) f32 = add(h, y)
losses, loss = linear_cross_entropy(z, head, targets, inverse_tokens)
)";

Program differentiated(std::initializer_list<const char*> names, bool accumulate = false) {
  const Program forward = parse(kForward);
  std::vector<TensorId> trainable;
  for (const char* name : names) trainable.push_back(forward.find(name));
  const Program result = differentiate(forward, trainable, {.accumulate = accumulate});
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  return result;
}

// Keys in pages of a pool are of sequences that are only continued.
TEST(Differentiate, RefusesAttentionWhoseKeysLieInPages) {
  const Program forward = parse(R"(program forward
tensor x (3, 4) f32 batch step
tensor w (4, 4) f32 weight run
tensor k (32, 4) f32 batch step
tensor v (32, 4) f32 batch step
tensor bounds (3, 2) i32 batch step
tensor pages (3, 4) i32 batch step
tensor head (6, 4) f32 weight run
tensor targets (3) i32 batch step
tensor inverse_tokens (1) f32 scalar step
tensor losses (3) f32 scalar step
tensor loss (1) f32 scalar step
q (3, 4) f32 = matmul(x, w) {transpose_b}
o (3, 4) f32, lse (1, 3) f32 = attention(q, k, v, bounds, bounds, pages) {heads 1, kv_heads 1, head_dim 4, paged, page_tokens 8}
losses, loss = linear_cross_entropy(o, head, targets, inverse_tokens)
)");
  const std::vector<TensorId> trainable{forward.find("w")};
  EXPECT_TRUE(testing::dies([&] { (void)differentiate(forward, trainable, {}); },
                            "which is for inference alone"));
}

TEST(Differentiate, OnlyPathsThatReachSomethingTrainable) {
  // b trains: the loss reaches it through z and y; neither n, h nor x want a gradient.
  const Program result = differentiated({"b"});
  const std::string text = print(result);
  EXPECT_NE(result.find("gradient.b"), program::kNone);
  EXPECT_EQ(result.find("gradient.a"), program::kNone);
  EXPECT_EQ(result.find("d.n"), program::kNone);
  EXPECT_EQ(count(text, "rms_norm_grad"), 0U);
  EXPECT_EQ(count(text, "linear_cross_entropy_train"), 1U);
  EXPECT_EQ(count(text, "linear_cross_entropy(hidden="), 0U);
}

TEST(Differentiate, AResidualsGradientsAreSummed) {
  // a trains: h feeds the norm and the residual, so its gradient is a sum; x wants none.
  const Program result = differentiated({"a"});
  const std::string text = print(result);
  EXPECT_EQ(count(text, "rms_norm_grad("), 1U);
  EXPECT_EQ(count(text, "= add(a="), 2U);  // the forward one and the sum of gradients
  EXPECT_EQ(result.find("d.x"), program::kNone);
  EXPECT_EQ(result.find("gradient.b"), program::kNone);
}

TEST(Differentiate, TheNextFormAddsToWhatTheFirstWrote) {
  const std::string first = print(differentiated({"a", "b"}));
  const std::string next = print(differentiated({"a", "b"}, true));
  EXPECT_EQ(count(first, "accumulate("), 0U);
  EXPECT_EQ(count(next, "accumulate(x="), 3U);  // two gradients and the loss
}

TEST(Recompute, ElementwiseOutputsAreMadeAgain) {
  const Program result = recompute(differentiated({"a", "b"}), RecomputeMode::none);
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  const std::string text = print(result);
  EXPECT_NE(result.find("n.again"), program::kNone);
  EXPECT_EQ(count(text, "rms_norm("), 2U);
  EXPECT_EQ(count(text, "matmul(a=x, b=a)"), 1U);  // h is kept
  EXPECT_NE(text.find("n.again"), std::string::npos);
}

// Two layers of a norm and a product, and the residual stream.
constexpr std::string_view kTwoLayers = R"(program forward
tensor tokens (8) i32 batch step
tensor table (6, 4) f32 weight run
tensor w0 (4) f32 weight run layer 0
tensor a (4, 4) f32 weight run layer 0
tensor w1 (4) f32 weight run layer 1
tensor b (4, 4) f32 weight run layer 1
tensor targets (8) i32 batch step
tensor inverse_tokens (1) f32 scalar step
tensor losses (8) f32 scalar step
tensor loss (1) f32 scalar step
x (8, 4) f32 layer 0 = embedding(table, tokens) layer none
n0 (8, 4) f32 = rms_norm(x, w0) layer 0
y0 (8, 4) f32 = matmul(n0, a) {transpose_b} layer 0
r (8, 4) f32 layer 1 = add(x, y0) layer 0
n1 (8, 4) f32 = rms_norm(r, w1) layer 1
y1 (8, 4) f32 = matmul(n1, b) {transpose_b} layer 1
z (8, 4) f32 layer none = add(r, y1) layer 1
losses, loss = linear_cross_entropy(z, table, targets, inverse_tokens)
)";

// One product trains: what it reads is made again of the residual stream, which nothing else of the
// backward pass reads. Of the first layer that is the embedding, which is made again too.
TEST(Recompute, BeginsAtTheResidualStreamAndNotInAFrozenLayer) {
  const Program forward = parse(kTwoLayers);
  for (const RecomputeMode mode :
       {RecomputeMode::none, RecomputeMode::attention, RecomputeMode::layer})
    for (const bool is_first : {false, true}) {
      const std::vector<TensorId> trainable{forward.find(is_first ? "a" : "b")};
      const Program result = recompute(differentiate(forward, trainable, {}), mode);
      EXPECT_EQ(program::verify(result), std::vector<std::string>{});
      const std::string text = print(result);
      EXPECT_EQ(count(text, "embedding("), is_first ? 2U : 1U) << text;
      EXPECT_EQ(count(text, "matmul(a=n0, b=a)"), 1U) << text;
      EXPECT_EQ(count(text, "rms_norm(x=x"), is_first ? 2U : 1U) << text;
      EXPECT_EQ(count(text, "rms_norm(x=r"), is_first ? 1U : 2U) << text;
    }
}

// What leaves a layer is kept even if it is cheap to make, and so is what belongs to no layer and
// is read by layers.
TEST(Recompute, KeepsWhatSeveralLayersRead) {
  std::string text(kTwoLayers);
  const auto put = [&](std::string_view before, const char* more) {
    text.insert(text.find(before), more);
  };
  text.replace(text.find("r (8, 4) f32 layer 1 = add(x, y0)"), 33, "s (8, 4) f32 = add(x, y0)");
  put("n1 (8, 4)", "r (8, 4) f32 layer 1 = rms_norm(s, w0) layer 0\n");
  put("n0 (8, 4)", "p (8, 4) f32 layer none = matmul(x, a) {transpose_b} layer none\n");
  put("z (8, 4)", "g (8, 4) f32 = silu_mul(y1, p) layer 1\n");
  text.replace(text.find("add(r, y1)"), 10, "add(r, g)");
  const Program forward = parse(text);
  const std::vector<TensorId> trainable{forward.find("a"), forward.find("b")};
  for (const RecomputeMode mode : kRecomputeModes) {
    const Program result = recompute(differentiate(forward, trainable, {}), mode);
    EXPECT_EQ(program::verify(result), std::vector<std::string>{});
    for (const char* kept : {"r.again", "p.again"})
      EXPECT_EQ(result.find(kept), program::kNone) << print(result);
  }
}

// A product and its sum with r; what else is read decides.
const std::string kProductAndSum = R"(program p
tensor x (8, 4) f32 batch step
tensor r (8, 4) f32 batch step
tensor w (4, 4) f32 weight run
t (8, 4) f32 = matmul(x, w) {transpose_b}
y (8, 4) f32 = add(t, r)
)";

TEST(FuseAdds, AProductTakesTheAddend) {
  const Program fused =
      fuse_adds(parse(kProductAndSum + "z (8, 4) f32 = add(y, r)\n"), any_kind(false));
  const std::string text = print(fused);
  EXPECT_NE(text.find("y (8, 4) f32 = matmul(a=x, b=w, addend=r) {transpose_b, addend}"),
            std::string::npos)
      << text;
  EXPECT_EQ(count(text, "= add(a="), 1U);
}

TEST(FuseAdds, NotWhereTheProductIsReadElsewhere) {
  const Program fused =
      fuse_adds(parse(kProductAndSum + "z (8, 4) f32 = add(t, y)\n"), any_kind(false));
  EXPECT_EQ(count(print(fused), "matmul(a=x, b=w) {transpose_b}"), 1U);
  EXPECT_EQ(count(print(fused), "= add(a="), 2U);
}

// A product with a stored weight, where the target makes it with a sum.
TEST(FuseAdds, OnlyWhereTheTargetRunsIt) {
  const Program program = parse(R"(program p
tensor x (2, 64) f32 batch step
tensor r (2, 4) f32 batch step
tensor codes (128, 1) u8 weight run
tensor absmax (4) f32 weight run
t (2, 4) f32 = matmul_nf4(x, codes, absmax)
y (2, 4) f32 = add(t, r)
)");
  for (const bool sums : {true, false}) {
    const TestTarget target([sums](const program::OperationView& view) {
      const auto* product = view.operation.attributes.get_if<program::MatmulNf4>();
      return product == nullptr || !product->addend || sums;
    });
    const Program fused = fuse_adds(program, target);
    EXPECT_EQ(program::verify(fused), std::vector<std::string>{});
    EXPECT_EQ(fused.operations.size(), sums ? 1U : 2U) << print(fused);
    EXPECT_EQ(count(print(fused), "matmul_nf4(x=x, codes=codes, absmax=absmax, addend=r)"),
              sums ? 1U : 0U)
        << print(fused);
    EXPECT_EQ(count(print(expand_unsupported(fused, TestTarget([](const auto& view) {
                                               return view.operation.kind() !=
                                                      program::Kind::matmul_nf4;
                                             }))),
                    "addend=r"),
              sums ? 1U : 0U);
  }
}

// A linear with its adapter, and a residual.
const std::string kAdapted = R"(program p
tensor x (8, 4) f32 batch step
tensor x2 (8, 4) f32 batch step
tensor r (8, 6) f32 batch step
tensor w (6, 4) f32 weight run
tensor a (2, 4) f32 adapter run
tensor b (6, 2) f32 adapter run
base (8, 6) f32 = matmul(x, w) {transpose_b}
hidden (8, 2) f32 = matmul(x, a) {transpose_b}
)";
const std::string kScaled = "scaled (8, 6) f32 = matmul(hidden, b) {transpose_b, alpha 2}\n";
const std::string kSums = "y (8, 6) f32 = add(base, scaled)\nz (8, 6) f32 = add(y, r)\n";

TEST(FuseLowRank, ALinearItsAdapterAndTheResidualAreOneProduct) {
  const Program lowered = lower(parse(kAdapted + kScaled + kSums), any_kind(true));
  EXPECT_EQ(program::verify(lowered), std::vector<std::string>{});
  const std::string text = print(lowered);
  EXPECT_NE(
      text.find(
          "matmul(a=x, b=w, addend=r, low_a=hidden, low_b=b) {transpose_b, addend, augmented, "
          "low_transpose_b, low_alpha 2}"),
      std::string::npos)
      << text;
  EXPECT_EQ(lowered.operations.size(), 2U) << text;
}

TEST(FuseLowRank, TheLowRankProductMayComeFirst) {
  const Program fused = fuse_low_rank(parse(R"(program p
tensor h (8, 2) f32 batch step
tensor a (2, 4) f32 adapter run
tensor dy (8, 6) f32 batch step
tensor w (6, 4) f32 weight run
tensor other (8, 4) f32 batch step
first (8, 4) f32 = matmul(h, a, other) {addend}
dx (8, 4) f32 = matmul(dy, w, first) {alpha 0.5, addend}
)"),
                                      any_kind(true));
  EXPECT_NE(
      print(fused).find(
          "dx (8, 4) f32 = matmul(a=dy, b=w, addend=other, low_a=h, low_b=a) {alpha 0.5, addend, "
          "augmented}"),
      std::string::npos)
      << print(fused);
  EXPECT_EQ(fused.operations.size(), 1U);
}

TEST(FuseLowRank, OnlyWhereTheTargetRunsIt) {
  const std::string text = print(lower(parse(kAdapted + kScaled + kSums), any_kind(false)));
  EXPECT_EQ(count(text, "augmented"), 0U);
  EXPECT_EQ(count(text, "matmul(a="), 3U);
}

TEST(FuseLowRank, NotOverAChangeOfWhatTheFirstReadsOrWrote) {
  const std::string sum = kScaled + "y (8, 6) f32 = add(base, scaled)\n";
  for (const char* change : {"accumulate(x2) updates (x)\n", "accumulate(r) updates (base)\n"}) {
    const Program program = fuse_adds(parse(kAdapted + change + sum), any_kind(true));
    EXPECT_EQ(count(print(program), "addend="), 1U);
    EXPECT_EQ(count(print(fuse_low_rank(program, any_kind(true))), "augmented"), 0U) << change;
  }
}

TEST(FuseAccumulates, AProductAddsToTheGradientItself) {
  const Program fused = fuse_accumulates(parse(R"(program p
tensor dy (8, 4) f32 batch step
tensor x (8, 4) f32 batch step
tensor g (4, 4) f32 gradient step
part (4, 4) f32 = matmul(dy, x) {transpose_a}
accumulate(part) updates (g)
)"));
  ASSERT_EQ(fused.operations.size(), 1U);
  EXPECT_NE(print(fused).find("matmul(a=dy, b=x) updates (c=g) {transpose_a, accumulate}"),
            std::string::npos)
      << print(fused);
}

TEST(InPlace, OnlyOverWhatDies) {
  constexpr std::string_view kRope = R"(program p
tensor x (8, 4) f32 batch step
tensor w (4, 4) f32 weight run
tensor table (8, 4) f32 batch step
q (8, 4) f32 = matmul(x, w) {transpose_b}
r (8, 4) f32 = rope(q, table) {head_dim 4}
)";
  const Program shared = share_in_place(parse(kRope));
  EXPECT_TRUE(shared.tensor(shared.find("r")).is_view());
  const std::string kept_alive = std::string(kRope) + "s (8, 4) f32 = add(q, r)\n";
  const Program apart = share_in_place(parse(kept_alive));
  EXPECT_FALSE(apart.tensor(apart.find("r")).is_view());
}

TEST(RemoveUnused, DropsWhatNoOperationTouches) {
  const Program result = remove_unused(parse(R"(program p
tensor x (8, 4) f32 batch step
tensor gone (8, 4) f32
tensor slot (64) u8 staging
tensor w (4, 4) f32 weight run
y (8, 4) f32 = matmul(x, w) {transpose_b}
)"));
  EXPECT_EQ(result.find("gone"), program::kNone);
  EXPECT_NE(result.find("slot"), program::kNone);
  EXPECT_NE(result.find("y"), program::kNone);
}

TEST(Decide, WritesWhatTheTargetSays) {
  const Program program = parse(
      "program p\ntensor q (4, 4) f32\ntensor k (4, 4) f32\ntensor v (4, 4) f32\n"
      "tensor b (1, 2) i32\n"
      "o (4, 4) f32, lse (1, 4) f32 = attention(q, k, v, b, b) {heads 1, kv_heads 1, head_dim 4}");
  TestTarget target([](const program::OperationView&) { return true; });
  EXPECT_EQ(print(decide(program, target)).find("kernel library"), std::string::npos);
  target.decided = program::Attention{
      .heads = 1, .kv_heads = 1, .head_dim = 4, .kernel = {.by = program::AttentionBy::library}};
  EXPECT_NE(print(decide(program, target)).find("kernel library"), std::string::npos);
}

constexpr std::string_view kUpdate = R"(program update
tensor learning_rate (1) f32 scalar step
tensor step (1) i32 scalar step
tensor a (4, 4) f32 weight run
tensor b (4, 4) f32 weight run
tensor gradient.a (4, 4) f32 gradient step
tensor gradient.b (4, 4) f32 gradient step
tensor m.a (4, 4) f32 moment run
tensor v.a (4, 4) f32 moment run
tensor m.b (4, 4) f32 moment run
tensor v.b (4, 4) f32 moment run
tensor gradient_norm (1) f32 scalar step
tensor clip_factor (1) f32 scalar step
gradient_norm = global_norm(gradient.a, gradient.b) update
clip_factor = clip_factor(gradient_norm) update
adamw(gradient.a, clip_factor, learning_rate, step) updates (a, m.a, v.a) {site 0} update
adamw(gradient.b, clip_factor, learning_rate, step) updates (b, m.b, v.b) {site 1} update
)";

// b is read again, for d.n, after its gradient is there: its update waits.
TEST(UpdateInBackward, MovesBehindTheGradientAndTheLastReader) {
  Program update = parse(kUpdate);
  const Program micro = differentiated({"a", "b"});
  const Program moved = update_in_backward(micro, update);
  EXPECT_EQ(program::verify(moved), std::vector<std::string>{});
  EXPECT_EQ(program::verify(update), std::vector<std::string>{});
  const std::string text = print(moved);
  EXPECT_EQ(count(text, "adamw(gradient="), 2U) << text;
  const auto at = [&](const char* word) {
    EXPECT_NE(text.find(word), std::string::npos) << word << text;
    return text.rfind(word);
  };
  EXPECT_LT(at("gradient.b (4, 4) f32 gradient ="), at("adamw(gradient=gradient.b"));
  EXPECT_LT(at("= matmul(a=d.z, b=b)"), at("adamw(gradient=gradient.b"));
  EXPECT_LT(at("adamw(gradient=gradient.b"), at("gradient.a (4, 4) f32 gradient ="))
      << "one gradient at a time";
  EXPECT_LT(at("gradient.a (4, 4) f32 gradient ="),
            at("adamw(gradient=gradient.a, factor=clip_factor.a"));
  EXPECT_EQ(moved.tensor(moved.find("gradient.a")).lifetime, program::Lifetime::program);
  EXPECT_EQ(print(update), R"(program update
tensor gradient_norm.a (1) f32 scalar step
tensor gradient_norm.b (1) f32 scalar step
gradient_norm (1) f32 scalar step = global_norm(gradients=gradient_norm.a, gradients=gradient_norm.b) update
)");
}

// A factor of its own clips to nothing and undoes no scale of the loss.
TEST(UpdateInBackward, RefusesAFactorThatDoesMore) {
  const Program micro = differentiated({"a", "b"});
  const std::string_view made = "clip_factor = clip_factor(gradient_norm)";
  for (const std::string_view other :
       {"clip_factor = clip_factor(gradient_norm) {max_norm 1}",
        "norm (1) f32 scalar step, clip_factor = scaled_clip_factor(gradient_norm) "
        "updates (learning_rate, step)"}) {
    std::string text(kUpdate);
    text.replace(text.find(made), made.size(), other);
    Program update = parse(text);
    EXPECT_TRUE(testing::dies([&] { update_in_backward(micro, update); }, "cannot move")) << other;
  }
}

}  // namespace
}  // namespace snug::passes
