// The end of the program, which reads the normed output of the last layer: losses of tokens, or
// logits of some rows.
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/forward/forward_builder.h"
#include "models/weights.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/softcap.h"
#include "program/kinds/expert/top_k.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/product/column_scale.h"
#include "program/kinds/product/embedding.h"
#include "program/kinds/product/matmul.h"

namespace snug::models {

using namespace program;  // NOLINT: this file speaks the program's words throughout

namespace {

// One of the operations that run one after the other, with the operands that it reads besides the
// previous result.
struct HeadStep {
  const char* name;
  Attributes attributes;
  std::vector<TensorId> reads;
};

}  // namespace

TensorId ForwardBuilder::scaled_for_head(TensorId hidden) {
  if (stack_.head_scale == 1.0) return hidden;
  const TensorId scaled = activation("final.scaled", stack_.hidden_size);
  builder_.emit(Scale{.factor = static_cast<float>(stack_.head_scale)}, {hidden}, {scaled});
  return scaled;
}

void ForwardBuilder::head(TensorId normed) {
  const TensorId hidden = scaled_for_head(normed);
  const TensorId w = weight(stack_.tied_head ? embedding_weight(stack_) : head_weight(stack_));
  if (options_.head == Head::logits)
    head_logits(hidden, w);
  else
    head_losses(hidden, w);
}

void ForwardBuilder::head_losses(TensorId hidden, TensorId w) {
  const TensorId targets = batch(kTargetsName, {tokens()});
  const TensorId inverse =
      declare(std::string(kInverseTokensName), {1}, DType::f32, Role::batch, Lifetime::step);
  const TensorId losses = declare("losses", {tokens()}, DType::f32, Role::scalar, Lifetime::step);
  const TensorId loss =
      declare(std::string(kLossName), {1}, DType::f32, Role::scalar, Lifetime::step);
  std::vector<TensorId> reads{hidden, w, targets, inverse};
  const bool is_adjusted = stack_.adjusts_linears;
  if (is_adjusted) {
    SNUG_CHECK(!stack_.head_bias, "{} has a bias, and would have another", stack_.head);
    const Adjustment adjusting = adjustment(stack_.head, stack_.vocab_size);
    reads.insert(reads.end(), {adjusting.bias, adjusting.scale});
  } else if (stack_.head_bias) {
    reads.push_back(weight(bias_name(stack_.head)));
  }
  builder_.emit(LinearCrossEntropy{.softcap = stack_.logit_softcap,
                                   .bias = stack_.head_bias || is_adjusted,
                                   .gain = is_adjusted},
                reads, {losses, loss});
}

void ForwardBuilder::head_logits(TensorId hidden, TensorId w) {
  std::vector<HeadStep> steps{{"final.product", Matmul{.transpose_b = true}, {w}}};
  if (stack_.head_bias)
    steps.push_back({"final.biased", AddBias{}, {weight(bias_name(stack_.head))}});
  if (stack_.adjusts_linears) {
    const Adjustment adjusting = adjustment(stack_.head, stack_.vocab_size);
    steps.push_back({"final.moved", AddBias{}, {adjusting.bias}});
    steps.push_back({"final.stretched", ScaleColumns{}, {adjusting.scale}});
  }
  if (stack_.logit_softcap > 0)
    steps.push_back({"final.capped", Softcap{stack_.logit_softcap}, {}});

  const TensorId rows = batch(kOutputRowsName, {options_.outputs});
  TensorId result = builder_.activation("final.selected", {options_.outputs, stack_.hidden_size},
                                        options_.compute);
  builder_.emit(Embedding{}, {hidden, rows}, {result});
  const TensorId logits = declare(input_name(kLogitsName), {options_.outputs, stack_.vocab_size},
                                  DType::f32, Role::logits, Lifetime::step);
  for (HeadStep& step : steps) {
    step.reads.insert(step.reads.begin(), result);
    const bool is_last = &step == &steps.back();
    result =
        is_last ? logits
                : builder_.activation(step.name, {options_.outputs, stack_.vocab_size}, DType::f32);
    builder_.emit(step.attributes, std::move(step.reads), {result});
  }
  if (options_.candidates == 0) return;
  const auto found = [&](std::string_view name, DType dtype) {
    return declare(input_name(name), {options_.outputs, options_.candidates}, dtype, Role::scalar,
                   Lifetime::step);
  };
  builder_.emit(TopK{options_.candidates}, {logits},
                {found(kLikeliestLogitsName, DType::f32), found(kLikeliestIdsName, DType::i32)});
}

}  // namespace snug::models
