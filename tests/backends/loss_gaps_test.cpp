// A linear cross-entropy whose head, or its gradient, has gaps between rows. The cpu backend runs
// it where it multiplies the head as it lies. Where the library would copy it in every chunk, it
// says that it does not, and lowering makes products of it, which decide what they copy.
#include <gtest/gtest.h>

#include <algorithm>

#include "../base/captured_stream.h"
#include "backends/cpu/isa.h"
#include "comparison.h"
#include "operation_case.h"
#include "passes/lowering/lower.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::test {
namespace {

using program::TensorId;

enum class HeadGradient { evaluated, none, written, added };

struct Head {
  HeadGradient gradient;
  bool has_gaps;
  bool gradient_has_gaps;
  float softcap = 0.0F;

  // Of the head, or of a gradient that is made.
  bool has_any_gaps() const {
    return has_gaps || (gradient_has_gaps && gradient >= HeadGradient::written);
  }
};

constexpr int64_t kTokens = 70;
constexpr int64_t kVocab = 1100;  // a block of columns and a rest
constexpr int64_t kWidth = 33;

OperationCase loss_of(const Head& head, const Types& types, Random& random) {
  CaseBuilder builder(types, random);
  const auto with_gaps = [&](bool gaps, auto add) {
    if (gaps) builder.use_views();
    const TensorId id = add();
    builder.use_whole_tensors();
    return id;
  };
  const program::Shape weight{kVocab, kWidth};
  const std::vector<TensorId> reads{
      builder.activation({kTokens, kWidth}),
      with_gaps(head.has_gaps, [&] { return builder.activation(weight, 0.0, 0.2); }),
      builder.index({kTokens}, integers(random, kTokens, 0, kVocab - 1)),
      builder.measure({1}, {0.125})};
  std::vector<TensorId> writes{builder.output_measure({kTokens}), builder.output_measure({1})};
  if (head.gradient == HeadGradient::evaluated)
    return builder.finish("evaluated", program::LinearCrossEntropy{.softcap = head.softcap}, reads,
                          writes);
  writes.push_back(builder.output_activation({kTokens, kWidth}));
  std::vector<TensorId> updates;
  if (head.gradient == HeadGradient::written)
    writes.push_back(
        with_gaps(head.gradient_has_gaps, [&] { return builder.output_activation(weight); }));
  if (head.gradient == HeadGradient::added)
    updates.push_back(
        with_gaps(head.gradient_has_gaps, [&] { return builder.activation(weight, 0.0, 0.01); }));
  const program::LinearCrossEntropyTrain train{
      .weight_gradient = head.gradient >= HeadGradient::written,
      .accumulate = head.gradient == HeadGradient::added,
      .softcap = head.softcap};
  return builder.finish("trained", train, reads, writes, updates);
}

// Whether a loss was made into products.
bool check_loss(const OperationCase& loss, Backend& backend) {
  const RunResult oracle = oracle_of(loss);
  const program::Program expanded = passes::expand_unsupported(loss.program, backend);
  for (const program::Operation& operation : expanded.operations)
    EXPECT_TRUE(backend.runs({expanded, operation})) << name_of(operation.kind());
  const RunResult result = guarded_run(backend, expanded, loss.inputs);
  EXPECT_EQ(result.violations, std::vector<std::string>{});
  for (const auto* written : {&loss.operation().writes, &loss.operation().updates})
    for (const TensorId id : *written)
      EXPECT_LE(relative_error(result.values.at(id), oracle.values.at(id)),
                loss.is_f32() ? 1e-5 : 1e-2)
          << loss.program.tensor(id).name;
  return expanded.operations.size() > 1;
}

TEST(LossOfAHeadWithGaps, IsExpandedWhereTheLibraryWouldCopyIt) {
  const auto backend = open_backend("cpu", {.threads = 2});
  const bool has_library = cpu::detect_isa() >= cpu::Isa::v4;
  Random random(test_seed());
  for (const Types& types : kAllTypes) {
    if (!types.required) continue;
    for (const auto gradient :
         {HeadGradient::evaluated, HeadGradient::none, HeadGradient::written, HeadGradient::added})
      for (const bool has_gaps : {false, true})
        for (const bool gradient_has_gaps : {false, true}) {
          const Head head{gradient, has_gaps, gradient_has_gaps, has_gaps ? 1.5F : 0.0F};
          const OperationCase loss = loss_of(head, types, random);
          SCOPED_TRACE(fmt::format("{} [{}] gaps {} {}, SNUG_TEST_SEED={}", loss.name, types.name,
                                   has_gaps, gradient_has_gaps, test_seed()));
          if (types.activation == program::DType::bf16 && !cpu_must_multiply_bf16()) continue;
          const bool is_expanded = check_loss(loss, *backend);
          // Products of bf16 on tiles take any distance between rows.
          if (!head.has_any_gaps() || loss.has_f16() || !has_library) {
            EXPECT_FALSE(is_expanded);
          }
          if (head.has_any_gaps() && loss.is_f32() && has_library) {
            EXPECT_TRUE(is_expanded);
          }
        }
  }
}

// What another target decided for such a loss is refused before anything runs.
TEST(LossOfAHeadWithGaps, ByTheLibraryIsRefused) {
  const auto backend = open_backend("cpu", {.threads = 2});
  if (cpu::detect_isa() < cpu::Isa::v4) GTEST_SKIP() << "no library here";
  Random random(test_seed());
  OperationCase whole = loss_of({HeadGradient::written, false, false}, kAllTypes[0], random);
  OperationCase gaps = loss_of({HeadGradient::written, true, false}, kAllTypes[0], random);
  gaps.program.operations[0].attributes = backend->decide(whole.view());
  EXPECT_FALSE(backend->runs(gaps.view()));
  EXPECT_TRUE(testing::dies([&] { (void)backend->prepare(gaps.view()); },
                            "linear_cross_entropy_train of such tensors or attributes, which cpu "
                            "does not run"));
}

}  // namespace
}  // namespace snug::backends::test
