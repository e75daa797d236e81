#include "backends/cuda/product/few_rows.h"

#include <algorithm>

#include "backends/cuda/product/kernels/few_rows.h"
#include "backends/cuda/product/kernels/few_rows_matrix.h"
#include "base/error.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/attention/rope.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/silu_mul.h"
#include "program/kinds/norm/rms_norm.h"
#include "program/kinds/product/matmul.h"
#include "program/kinds/product/nf4.h"

namespace snug::backends::cuda {
namespace {

using program::AddBias;
using program::CacheWrite;
using program::Matmul;
using program::MatmulNf4;
using program::RmsNorm;
using program::Rope;
using program::SiluMul;

template <typename Weight>
FewRowsLaunch<Weight> launch_of(const Matrix& x) {
  FewRowsLaunch<Weight> launch;
  launch.rows = x.rows;
  launch.columns = x.columns;
  launch.x = x.operand;
  return launch;
}

FewRowsPart<NarrowWeight> part_of(const FewRowsProduct& product) {
  return {.weight = {static_cast<const uint16_t*>(product.weight.operand.data),
                     product.weight.operand.stride},
          .addend = product.addend,
          .y = product.y.operand,
          .outputs = product.y.columns,
          .alpha = product.alpha};
}

FewRowsPart<Nf4Weight> part_of(const FewRowsNf4Product& product) {
  return {.weight = product.weight,
          .addend = product.addend,
          .y = product.y.operand,
          .outputs = product.y.columns};
}

FewRowsNorm norm_of(const RmsNorm& norm, const Invocation& invocation) {
  const Matrix x = matrix_of(invocation[RmsNorm::kX]);
  const Matrix weight = matrix_of(invocation[RmsNorm::kW]);
  const Matrix y = matrix_of(invocation[RmsNorm::kY]);
  return {x.operand, weight.operand, y.operand, norm.epsilon, norm.offset};
}

// Records a product that shares a launch, which always uses tensor cores.
void note_tensor_cores(const Matmul&, const Invocation& invocation) {
  invocation.note_decision<&Matmul::products, &program::ProductCount::count>(1);
  invocation.note_decision<&Matmul::choice, &program::EdgedChoice::main,
                           &program::ProductChoice::algorithm>(
      ProductAlgorithm::few_rows_tensor_cores);
}
void note_tensor_cores(const MatmulNf4&, const Invocation& invocation) {
  invocation.note_decision<&MatmulNf4::algorithm>(ProductAlgorithm::few_rows_tensor_cores);
}

template <typename Weight>
void add_bias(const Invocation& invocation, FewRowsLaunch<Weight>& launch) {
  FewRowsPart<Weight>& part = launch.parts[launch.count - 1];
  const void* const x = invocation[AddBias::kX].data;
  SNUG_CHECK(x == part.y.data && x == invocation[AddBias::kY].data,
             "a bias of what its launch does not make in place");
  part.bias = matrix_of(invocation[AddBias::kBias]).operand;
}

// The part whose outputs, or what its rotation makes of them, are at `data`. It is a bug if there
// is none.
template <typename Weight>
FewRowsPart<Weight>& part_that_makes(FewRowsLaunch<Weight>& launch, const void* data) {
  FewRowsPart<Weight>* const end = launch.parts + launch.count;
  FewRowsPart<Weight>* const found =
      std::find_if(launch.parts, end, [&](const FewRowsPart<Weight>& part) {
        return (part.rotation.y.data != nullptr ? part.rotation.y.data : part.y.data) == data;
      });
  SNUG_CHECK(found != end, "a rotation or cache write of what its launch does not make");
  return *found;
}

template <typename Weight>
void add_rotation(const Rope& rope, const Invocation& invocation, FewRowsLaunch<Weight>& launch) {
  const Matrix x = matrix_of(invocation[Rope::kX]);
  RotationPart& rotation = part_that_makes(launch, x.operand.data).rotation;
  rotation.y = matrix_of(invocation[Rope::kY]).operand;
  rotation.head_dim = rope.head_dim;
  rotation.width = rotated_width(rope);
  rotation.rotated_heads = rope.rotated_heads > 0 ? rope.rotated_heads : x.columns / rope.head_dim;
  launch.table = matrix_of(invocation[Rope::kTable]).operand;
}

template <typename Weight>
void add_write(const Invocation& invocation, FewRowsLaunch<Weight>& launch) {
  const Matrix x = matrix_of(invocation[CacheWrite::kX]);
  const Matrix cache = matrix_of(invocation[CacheWrite::kCache]);
  RotationPart& rotation = part_that_makes(launch, x.operand.data).rotation;
  // What is not rotated is one head.
  if (rotation.y.data == nullptr) rotation.head_dim = rotation.width = x.columns;
  rotation.cache = cache.operand;
  rotation.cache_rows = cache.rows;
  launch.slots = integers_of(invocation[CacheWrite::kSlots]);
}

// Runs [rms_norm] products with biases [silu_mul] [rope] ... [cache_write] ..., with products of
// this kind: prepare() has checked that few_rows_together joins them.
template <typename Struct, typename Weight>
void run_list(std::span<const Invocation> list, CudaContext& context) {
  FewRowsLaunch<Weight> launch;
  for (size_t i = 0; i < list.size(); ++i) list[i].note_run(i > 0);
  const Invocation* const gated = list.back().attributes->is<SiluMul>() ? &list.back() : nullptr;
  if (gated != nullptr) {
    launch.gated = matrix_of((*gated)[SiluMul::kY]).operand;
    list = list.first(list.size() - 1);
  }
  if (const auto* norm = list[0].attributes->get_if<RmsNorm>()) {
    launch.norm = norm_of(*norm, list[0]);
    list = list.subspan(1);
  }
  for (const Invocation& invocation : list) {
    if (const auto* rope = invocation.attributes->get_if<Rope>()) {
      add_rotation(*rope, invocation, launch);
      continue;
    }
    if (invocation.attributes->is<AddBias>()) {
      add_bias(invocation, launch);
      continue;
    }
    if (invocation.attributes->is<CacheWrite>()) {
      add_write(invocation, launch);
      continue;
    }
    const auto product = product_of(invocation.attributes->get<Struct>(), invocation);
    launch.rows = product.x.rows;
    launch.columns = product.x.columns;
    launch.x = product.x.operand;
    launch.add(part_of(product), product.weight_is_constant);
    note_tensor_cores(invocation.attributes->get<Struct>(), invocation);
  }
  // It is a bug if the gate does not read the outputs of the launch's parts.
  if (gated != nullptr)
    SNUG_CHECK(launch.parts[0].y.data == (*gated)[SiluMul::kGate].data &&
                   launch.parts[1].y.data == (*gated)[SiluMul::kUp].data,
               "a product of gates that is not made in its launch");
  multiply_few_rows(launch, context.device.card, context.stream.get());
}

}  // namespace

ProductAlgorithm multiply_few_rows(const FewRowsProduct& product, ProductAlgorithm algorithm,
                                   CudaContext& context) {
  const auto& [x, weight, addend, y, alpha, is_constant] = product;
  if (y.columns == 0) return algorithm;
  if (algorithm == ProductAlgorithm::few_rows_tensor_cores) {
    auto launch = launch_of<NarrowWeight>(x);
    launch.add(part_of(product), is_constant);
    multiply_few_rows(launch, context.device.card, context.stream.get());
    return ProductAlgorithm::few_rows_tensor_cores;
  }
  multiply_few_rows(FewRowsRun{.inputs = walk_rows({&x, &weight}),
                               .outputs = y.columns,
                               .x = x.operand,
                               .weight = weight.operand,
                               .addend = addend,
                               .y = y.operand,
                               .alpha = alpha},
                    context.stream.get());
  return ProductAlgorithm::few_rows;
}

ProductAlgorithm multiply_few_rows(const FewRowsNf4Product& product, ProductAlgorithm algorithm,
                                   CudaContext& context) {
  const auto& [x, weight, addend, y, is_constant] = product;
  if (y.columns == 0) return algorithm;
  if (algorithm == ProductAlgorithm::few_rows_tensor_cores) {
    auto launch = launch_of<Nf4Weight>(x);
    launch.add(part_of(product), is_constant);
    multiply_few_rows(launch, context.device.card, context.stream.get());
    return ProductAlgorithm::few_rows_tensor_cores;
  }
  multiply_few_rows_nf4({.inputs = walk_rows({&x}),
                         .outputs = y.columns,
                         .x = x.operand,
                         .weight = weight,
                         .addend = addend,
                         .y = y.operand},
                        context.stream.get());
  return ProductAlgorithm::few_rows;
}

FewRowsProduct product_of(const Matmul& matmul, const Invocation& invocation) {
  FewRowsProduct product{.x = matrix_of(invocation[Matmul::kA]),
                         .weight = matrix_of(invocation[Matmul::kB]),
                         .addend = {},
                         .y = matrix_of(invocation[Matmul::kC]),
                         .alpha = matmul.alpha,
                         .weight_is_constant = invocation[Matmul::kB].is_constant};
  if (matmul.addend) product.addend = matrix_of(invocation[Matmul::kAddend]).operand;
  return product;
}

// Whether all tensors of the stored weight are constant.
bool is_constant(const MatmulNf4& matmul, const Invocation& invocation) {
  if (!invocation[MatmulNf4::kCodes].is_constant || !invocation[MatmulNf4::kAbsmax].is_constant)
    return false;
  return !matmul.nested || (invocation[MatmulNf4::kNestedAbsmax].is_constant &&
                            invocation[MatmulNf4::kNestedMap].is_constant &&
                            invocation[MatmulNf4::kNestedOffset].is_constant);
}

FewRowsNf4Product product_of(const MatmulNf4& matmul, const Invocation& invocation) {
  FewRowsNf4Product product{.x = matrix_of(invocation[MatmulNf4::kX]),
                            .weight = nf4_weight(matmul, invocation),
                            .addend = {},
                            .y = matrix_of(invocation[MatmulNf4::kY]),
                            .weight_is_constant = is_constant(matmul, invocation)};
  if (matmul.addend) product.addend = matrix_of(invocation[MatmulNf4::kAddend]).operand;
  return product;
}

void run_few_rows_together(std::span<const Invocation> list, CudaContext& context) {
  const bool stored = std::any_of(list.begin(), list.end(), [](const Invocation& invocation) {
    return invocation.attributes->is<MatmulNf4>();
  });
  if (stored)
    run_list<MatmulNf4, Nf4Weight>(list, context);
  else
    run_list<Matmul, NarrowWeight>(list, context);
}

}  // namespace snug::backends::cuda
