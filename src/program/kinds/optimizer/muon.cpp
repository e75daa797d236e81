#include "program/kinds/optimizer/muon.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "program/ir/builder.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/functions.h"
#include "program/kinds/optimizer/optimizer_rule.h"
#include "program/kinds/product/matmul.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// If the scale leaves [1 / kMaxScale, kMaxScale], x is multiplied by it and the scale starts at 1
// again: bf16 and f32 hold values up to 2^126, and a product has two such factors.
constexpr double kMaxScale = 0x1p16;

std::string shape_error(const Muon& muon, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(muon.momentum >= 0.0F && muon.momentum < 1.0F, "has a momentum outside [0, 1)");
  rule.require(std::isfinite(muon.c0) && muon.c0 != 0.0F, "has a c0 that is 0 or not finite");
  rule.require(std::isfinite(muon.c1) && muon.c1 != 0.0F, "has a c1 that is 0 or not finite");
  rule.require(std::isfinite(muon.c2), "has a c2 that is not finite");
  rule.require(muon.steps >= 1, "has no steps");
  rule.require(muon.epsilon > 0.0F, "has an epsilon that is not above 0");
  rule.require(muon.weight_decay >= 0.0F, "has a negative weight_decay");
  check_step(rule, muon, view);
  const Shape& shape = view[Muon::kWeight].shape;
  rule.require(shape.rank() == 2 || shape.rank() == 3, "has a weight that is no matrix");
  rule.measure(Muon::kMomentum, shape);
  check_master(rule, muon, view);
  return rule.error();
}

std::string shape_error(const MuonMomentum& muon, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(muon.momentum >= 0.0F && muon.momentum < 1.0F, "has a momentum outside [0, 1)");
  const Tensor& gradient = view[MuonMomentum::kGradient];
  rule.measure(MuonMomentum::kFactor, Shape{1});
  rule.measure(MuonMomentum::kMomentum, gradient.shape);
  rule.mixed_types({MuonMomentum::kGradient, MuonMomentum::kDirection});
  rule.shape(MuonMomentum::kDirection, gradient.shape);
  return rule.error();
}

std::string shape_error(const Normalize& normalize, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(normalize.epsilon > 0.0F, "has an epsilon that is not above 0");
  const Tensor& x = view[Normalize::kX];
  rule.same_type({Normalize::kX, Normalize::kY});
  rule.shape(Normalize::kY, x.shape);
  return rule.error();
}

std::string shape_error(const MuonStep& step, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(step.weight_decay >= 0.0F, "has a negative weight_decay");
  rule.require(std::isfinite(step.rate_scale), "has a rate_scale that is not finite");
  rule.require(step.elements > 0, "steps no elements");
  const Tensor& weight = view[MuonStep::kWeight];
  rule.measure(MuonStep::kFactor, Shape{1});
  rule.measure(MuonStep::kLearningRate, Shape{1});
  rule.mixed_types({MuonStep::kWeight, MuonStep::kDirection});
  rule.shape(MuonStep::kDirection, weight.shape);
  check_master(rule, step, view);
  return rule.error();
}

// Three products per step: of x with itself, of the result with itself, and of that result with x.
Cost cost(const Muon& muon, const OperationView& view, const Extent&) {
  const Shape& shape = view[Muon::kWeight].shape;
  const auto elements = static_cast<double>(shape.elements());
  const auto side = static_cast<double>(std::min(shape[shape.rank() - 2], shape.columns()));
  const double other = static_cast<double>(std::max(shape[shape.rank() - 2], shape.columns()));
  const double squares = elements / other * side;  // elements of all matrices x x^T
  Cost cost = streaming_cost(view, shape.elements(), 12);
  cost.flops += muon.steps * (4 * elements * side + 2 * squares * side);
  return cost;
}

// Operations per element: clip (1), momentum (3), direction (3).
Cost cost(const MuonMomentum&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[MuonMomentum::kGradient].shape.elements(), 7);
}

// x is read twice: to compute its norm, and to be divided by it.
Cost cost(const Normalize&, const OperationView& view, const Extent&) {
  Cost cost = streaming_cost(view, view[Normalize::kX].shape.elements(), 3);
  cost.bytes += static_cast<double>(view[Normalize::kX].bytes());
  return cost;
}

Cost cost(const MuonStep&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[MuonStep::kWeight].shape.elements(), 4);
}

// Emits the orthogonalisation of one matrix of a stack.
class Orthogonalizer {
 public:
  Orthogonalizer(const Muon& muon, std::string name, Builder& builder)
      : muon_(muon), name_(std::move(name)), builder_(builder) {}

  // Emits the operations from `direction` (m, n) to `result` (m, n). The orthogonalised matrix is
  // `result` times the returned factor.
  double emit(TensorId direction, TensorId result) {
    const Shape shape = builder_.program().tensor(direction).shape;
    TensorId x = add("x", shape);
    builder_.emit(Normalize{muon_.epsilon}, {direction}, {x});
    double scale = 1;  // the wanted matrix divided by x
    for (int32_t step = 0; step < muon_.steps; ++step) {
      if (std::abs(scale) > kMaxScale || std::abs(scale) < 1 / kMaxScale) {
        const TensorId scaled = add("scaled", shape);
        builder_.emit(Scale{static_cast<float>(scale)}, {x}, {scaled});
        x = scaled;
        scale = 1;
      }
      const TensorId next = step + 1 < muon_.steps ? add("x", shape) : result;
      emit_step(x, next, scale);
      x = next;
      scale *= static_cast<double>(muon_.c0);
    }
    return scale;
  }

 private:
  void emit_step(TensorId x, TensorId next, double scale) {
    const Shape shape = builder_.program().tensor(x).shape;
    const bool is_tall = shape[0] > shape[1];
    const int64_t side = std::min(shape[0], shape[1]);
    const double c1 = muon_.c1;
    const TensorId gram = add("gram", {side, side});
    const TensorId polynomial = add("polynomial", {side, side});
    builder_.emit(product(is_tall, !is_tall, c1 * scale * scale), {x, x}, {gram});
    builder_.emit(sum(false, static_cast<double>(muon_.c2) / (c1 * c1)), {gram, gram, gram},
                  {polynomial});
    const double rest = 1 / static_cast<double>(muon_.c0);
    if (is_tall)
      builder_.emit(sum(true, rest), {x, polynomial, x}, {next});
    else
      builder_.emit(sum(false, rest), {polynomial, x, x}, {next});
  }

  static Matmul product(bool transpose_a, bool transpose_b, double alpha) {
    Matmul matmul;
    matmul.transpose_a = transpose_a;
    matmul.transpose_b = transpose_b;
    matmul.alpha = static_cast<float>(alpha);
    return matmul;
  }

  static Matmul sum(bool transpose_b, double alpha) {
    Matmul matmul = product(false, transpose_b, alpha);
    matmul.addend = true;
    return matmul;
  }

  TensorId add(const char* what, const Shape& shape) {
    Tensor tensor;
    tensor.name = fmt::format("{}.{}.{}", name_, what, builder_.program().tensors.size());
    tensor.shape = shape;
    tensor.dtype = muon_.bf16 ? DType::bf16 : DType::f32;
    tensor.layer = builder_.layer();
    return builder_.add(std::move(tensor));
  }

  const Muon& muon_;
  const std::string name_;
  Builder& builder_;
};

// Matrix `matrix` of a stack (matrices, m, n), or the tensor itself if it is a single matrix.
TensorId matrix_of(TensorId stack, int64_t matrix, Builder& builder) {
  const Tensor& whole = builder.program().tensor(stack);
  if (whole.shape.rank() == 2) return stack;
  Tensor view = whole;
  view.name = fmt::format("{}.{}", whole.name, matrix);
  view.shape = {whole.shape[1], whole.shape[2]};
  view.view = {.base = stack,
               .offset = matrix * view.shape.elements(),
               .strides = dense_strides(view.shape)};
  return builder.add(std::move(view));
}

void expand(const Muon& muon, const OperationView& view, Builder& builder) {
  // Copied, since the view may refer to the builder's own program, which grows.
  const Operation operation = view.operation;
  const Tensor weight = view[Muon::kWeight];
  const auto id = [&](const Operand<Muon>& operand) { return id_of(operation, operand); };
  const auto add_direction = [&](const char* what) {
    Tensor tensor;
    tensor.name = fmt::format("{}.{}.{}", weight.name, what, builder.program().tensors.size());
    tensor.shape = weight.shape;
    tensor.dtype = muon.bf16 ? DType::bf16 : DType::f32;
    tensor.layer = builder.layer();
    return builder.add(std::move(tensor));
  };
  const TensorId direction = add_direction("direction");
  const TensorId orthogonal = add_direction("orthogonal");
  builder.emit(MuonMomentum{muon.momentum, muon.nesterov}, {id(Muon::kGradient), id(Muon::kFactor)},
               {direction}, {id(Muon::kMomentum)});
  const int64_t matrices = weight.shape.rank() == 3 ? weight.shape[0] : 1;
  double scale = 1;
  for (int64_t matrix = 0; matrix < matrices; ++matrix)
    scale =
        Orthogonalizer(muon, weight.name, builder)
            .emit(matrix_of(direction, matrix, builder), matrix_of(orthogonal, matrix, builder));
  std::vector<TensorId> updates{id(Muon::kWeight)};
  if (muon.has_master) updates.push_back(id(Muon::kMaster));
  MuonStep step;
  step.weight_decay = muon.weight_decay;
  step.rate_scale = static_cast<float>(static_cast<double>(muon.rate_scale) * scale);
  step.elements = weight.shape.elements();
  step.has_master = muon.has_master;
  builder.emit(step, {orthogonal, id(Muon::kFactor), id(Muon::kLearningRate)}, {},
               std::move(updates));
}

}  // namespace

SNUG_DEFINE_KIND(Muon, .expand = expand);
SNUG_DEFINE_KIND(MuonMomentum);
SNUG_DEFINE_KIND(Normalize);
SNUG_DEFINE_KIND(MuonStep);

}  // namespace snug::program
