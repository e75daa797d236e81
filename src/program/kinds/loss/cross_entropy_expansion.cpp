#include "program/kinds/loss/cross_entropy_expansion.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "program/ir/program.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/softcap.h"
#include "program/kinds/product/column_scale.h"
#include "program/kinds/product/matmul.h"

namespace snug::program {
namespace {

// Adds a (tokens, vocab) tensor for the expansion. Logits are f32, like a chunk of them in the
// fused kind; f64 programs keep f64. A factor of the gradients' products (`is_factor`) has the type
// of the other factor, as in the fused kind.
template <typename Struct>
TensorId add_logits(const Struct&, const OperationView& view, Builder& builder, const char* suffix,
                    bool is_factor = false) {
  const Tensor& hidden = view[Struct::kHidden];
  Tensor logits;
  logits.name = fmt::format("{}.{}", view[Struct::kLosses].name, suffix);
  logits.shape = Shape{hidden.shape[0], view[Struct::kWeight].shape[0]};
  logits.dtype = is_factor || hidden.dtype == DType::f64 ? hidden.dtype : DType::f32;
  logits.role = Role::logits;
  logits.layer = view.operation.layer;
  return builder.add(std::move(logits));
}

// Emits the logits of all rows before a cap: scale hidden weight^T, or (hidden weight^T [+ bias])
// [* gain]; and returns them together with the values before the gain.
struct Logits {
  TensorId before_gain = kNone;
  TensorId logits = kNone;
};
template <typename Struct>
Logits emit_logits(const Struct& loss, const OperationView& view, Builder& builder) {
  // Copied, since the view may refer to the builder's own program, which grows.
  const Operation operation = view.operation;
  const char* name = loss.gain ? "before_gain" : "logits";
  const TensorId product = add_logits(loss, view, builder, loss.bias ? "product" : name);
  const TensorId sum = loss.bias ? add_logits(loss, view, builder, name) : product;
  const TensorId logits = loss.gain ? add_logits(loss, view, builder, "logits") : sum;
  Matmul linear;
  linear.transpose_b = true;
  linear.alpha = loss.scale;
  builder.emit(linear, {id_of(operation, Struct::kHidden), id_of(operation, Struct::kWeight)},
               {product});
  if (loss.bias) builder.emit(AddBias{}, {product, id_of(operation, Struct::kBias)}, {sum});
  if (loss.gain) builder.emit(ScaleColumns{}, {sum, id_of(operation, Struct::kGain)}, {logits});
  return {sum, logits};
}

}  // namespace

void expand_loss(const LinearCrossEntropy& loss, const OperationView& view, Builder& builder) {
  using Loss = LinearCrossEntropy;
  // Copied, since the view may refer to the builder's own program, which grows.
  const Operation operation = view.operation;
  const auto id = [&](const Operand<Loss>& operand) { return id_of(operation, operand); };
  const bool is_capped = loss.softcap > 0.0F;
  const TensorId logits = emit_logits(loss, view, builder).logits;
  const TensorId capped = is_capped ? add_logits(loss, view, builder, "capped") : logits;
  if (is_capped) builder.emit(Softcap{loss.softcap}, {logits}, {capped});
  builder.emit(CrossEntropy{loss.smoothing}, {capped, id(Loss::kTargets), id(Loss::kInverseTokens)},
               {id(Loss::kLosses), id(Loss::kLoss)});
}

void expand_loss(const LinearCrossEntropyTrain& loss, const OperationView& view, Builder& builder) {
  using Loss = LinearCrossEntropyTrain;
  // Copied, since the view may refer to the builder's own program, which grows.
  const Operation operation = view.operation;
  const auto id = [&](const Operand<Loss>& operand) { return id_of(operation, operand); };
  const bool is_capped = loss.softcap > 0.0F;
  const auto [before_gain, logits] = emit_logits(loss, view, builder);
  const TensorId dlogits = add_logits(loss, view, builder, "dlogits", !loss.gain);
  const TensorId capped = is_capped ? add_logits(loss, view, builder, "capped") : logits;
  const TensorId dcapped = is_capped ? add_logits(loss, view, builder, "dcapped") : dlogits;
  const std::vector<TensorId> scored{capped, id(Loss::kTargets), id(Loss::kInverseTokens)};
  if (is_capped) builder.emit(Softcap{loss.softcap}, {logits}, {capped});
  builder.emit(CrossEntropy{loss.smoothing}, scored, {id(Loss::kLosses), id(Loss::kLoss)});
  builder.emit(CrossEntropyGrad{loss.smoothing}, scored, {dcapped});
  if (is_capped) builder.emit(SoftcapGrad{loss.softcap}, {dcapped, capped}, {dlogits});
  if (loss.gain_gradient)
    builder.emit(ColumnGainGrad{}, {dlogits, before_gain}, {id(Loss::kDGain)});
  const TensorId dproduct = loss.gain ? add_logits(loss, view, builder, "dproduct", true) : dlogits;
  if (loss.gain) builder.emit(ScaleColumns{}, {dlogits, id(Loss::kGain)}, {dproduct});
  Matmul hidden_product;
  hidden_product.alpha = loss.scale;
  builder.emit(hidden_product, {dproduct, id(Loss::kWeight)}, {id(Loss::kDHidden)});
  if (loss.bias_gradient) builder.emit(SumRows{}, {dproduct}, {id(Loss::kDBias)});
  if (!loss.weight_gradient) return;
  Matmul weight_product;
  weight_product.transpose_a = true;
  weight_product.alpha = loss.scale;
  weight_product.accumulate = loss.accumulate;
  const TensorId dweight = id(Loss::kDWeight);
  if (loss.accumulate)
    builder.emit(weight_product, {dproduct, id(Loss::kHidden)}, {}, {dweight});
  else
    builder.emit(weight_product, {dproduct, id(Loss::kHidden)}, {dweight});
}

}  // namespace snug::program
