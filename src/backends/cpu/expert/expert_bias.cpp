#include <algorithm>
#include <array>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/product/row_products.h"
#include "program/kinds/expert/expert_bias.h"

namespace snug::backends::cpu {
namespace {

using program::AddExpertBias;
using program::ExpertBiasGrad;
using program::ExpertBiasWeightsGrad;

// A row, the expert whose bias is added to it, and the weight of that bias.
struct BiasedRow {
  int64_t row, expert;
  float weight;
};

// y = x + weight * bias; the product is not rounded to the type of y.
void add_weighted_row(const ElementwiseKernels& kernels, const Rows& x, const Rows& bias,
                      const BiasedRow& by, const Rows& y) {
  alignas(64) std::array<float, kRowPiece> product;
  for (int64_t begin = 0; begin < x.columns; begin += kRowPiece) {
    const int64_t n = std::min(kRowPiece, x.columns - begin);
    kernels.scale[bias.element][kF32](bias.at(by.expert, begin), product.data(), n, by.weight);
    kernels.add[x.element][kF32][y.element](x.at(by.row, begin), product.data(),
                                            y.at(by.row, begin), n);
  }
}

void run(const AddExpertBias& add, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[AddExpertBias::kX]);
  const Rows bias = rows_of(invocation[AddExpertBias::kBias]);
  const Rows y = rows_of(invocation[AddExpertBias::kY]);
  const int32_t* bounds = integers_of(invocation[AddExpertBias::kBounds]);
  const ElementwiseKernels& kernels = *context.kernels.elementwise;
  const int32_t* places = add.weighted ? integers_of(invocation[AddExpertBias::kPlaces]) : nullptr;
  const float* weights =
      add.weighted ? invocation[AddExpertBias::kWeights].as<const float>() : nullptr;
  parallel_ranges(x.rows, expert_rows_per_task(x.columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = places == nullptr ? i : places[i];
      const int64_t expert = program::expert_of_row(bounds, bias.rows, row);
      if (weights == nullptr)
        kernels.add[x.element][bias.element][y.element](x.at(row), bias.at(expert), y.at(row),
                                                        x.columns);
      else
        add_weighted_row(kernels, x, bias, {row, expert, weights[i]}, y);
    }
  });
}

// The number of columns that a task sums up.
constexpr int64_t kBiasColumns = 256;

// The sum of an expert's rows, each multiplied by its weight; null: without weights.
void sum_expert_rows(const ElementwiseKernels& kernels, const Rows& dy, const float* weights,
                     const std::array<int64_t, 2>& rows, const std::array<int64_t, 2>& columns,
                     float* sums) {
  const int64_t n = columns[1] - columns[0];
  std::fill(sums, sums + n, 0.0F);
  if (rows[0] == rows[1]) return;
  if (weights == nullptr)
    return kernels.sum_rows[dy.element](dy.at(rows[0], columns[0]), dy.stride, rows[1] - rows[0], n,
                                        sums);
  alignas(64) std::array<float, kBiasColumns> product;
  for (int64_t row = rows[0]; row < rows[1]; ++row) {
    kernels.scale[dy.element][kF32](dy.at(row, columns[0]), product.data(), n, weights[row]);
    kernels.add[kF32][kF32][kF32](sums, product.data(), sums, n);
  }
}

// The workspace holds the weight of each row.
int64_t workspace_bytes(const ExpertBiasGrad& grad, const program::OperationView& view,
                        const CpuContext&) {
  return grad.weighted ? view[ExpertBiasGrad::kDY].shape[0] * int64_t{sizeof(float)} : 0;
}

void run(const ExpertBiasGrad& grad, const Invocation& invocation, CpuContext& context) {
  const Rows dy = rows_of(invocation[ExpertBiasGrad::kDY]);
  const Rows dbias = rows_of(invocation[ExpertBiasGrad::kDBias]);
  const int32_t* bounds = integers_of(invocation[ExpertBiasGrad::kBounds]);
  const ElementwiseKernels& kernels = *context.kernels.elementwise;
  float* by_row = nullptr;
  if (grad.weighted) {
    by_row = invocation.workspace.as<float>();
    const int32_t* places = integers_of(invocation[ExpertBiasGrad::kPlaces]);
    const auto* weights = invocation[ExpertBiasGrad::kWeights].as<const float>();
    for (int64_t i = 0; i < dy.rows; ++i) by_row[places[i]] = weights[i];
  }
  const int64_t blocks = ceil_div(dy.columns, kBiasColumns);
  parallel_for(dbias.rows * blocks, [&](int64_t task) {
    const int64_t expert = task / blocks;
    const int64_t begin = task % blocks * kBiasColumns;
    const int64_t end = std::min(dy.columns, begin + kBiasColumns);
    alignas(64) std::array<float, kBiasColumns> sums;
    sum_expert_rows(kernels, dy, by_row, {bounds[2 * expert], bounds[2 * expert + 1]}, {begin, end},
                    sums.data());
    kernels.convert[kF32][dbias.element](sums.data(), dbias.at(expert, begin), end - begin);
  });
}

void run(const ExpertBiasWeightsGrad&, const Invocation& invocation, CpuContext& context) {
  const Rows dy = rows_of(invocation[ExpertBiasWeightsGrad::kDY]);
  const Rows bias = rows_of(invocation[ExpertBiasWeightsGrad::kBias]);
  const int32_t* bounds = integers_of(invocation[ExpertBiasWeightsGrad::kBounds]);
  const int32_t* places = integers_of(invocation[ExpertBiasWeightsGrad::kPlaces]);
  auto* dweights = invocation[ExpertBiasWeightsGrad::kDWeights].as<float>();
  const ElementwiseKernels& kernels = *context.kernels.elementwise;
  parallel_ranges(dy.rows, expert_rows_per_task(dy.columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = places[i];
      const int64_t expert = program::expert_of_row(bounds, bias.rows, row);
      dweights[i] =
          dot_rows(kernels, {dy.at(row), dy.element}, {bias.at(expert), bias.element}, dy.columns);
    }
  });
}

}  // namespace

SNUG_CPU_KIND(AddExpertBias);
SNUG_CPU_KIND(ExpertBiasGrad, .workspace_bytes = workspace_bytes);
SNUG_CPU_KIND(ExpertBiasWeightsGrad);

}  // namespace snug::backends::cpu
