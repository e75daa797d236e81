#include "program/kinds/elementwise/elementwise.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/formulas/random_bits.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

void run(const program::Add&, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[program::Add::kA]),
                           rows_of(invocation[program::Add::kB]),
                           rows_of(invocation[program::Add::kC])};
  const auto add =
      context.kernels.elementwise->add[tensors[0].element][tensors[1].element][tensors[2].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) { add(at[0], at[1], at[2], n); });
}

void run(const program::Accumulate& accumulate, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[program::Accumulate::kX]),
                           rows_of(invocation[program::Accumulate::kY])};
  const Element x = tensors[0].element;
  const Element y = tensors[1].element;
  const ElementwiseKernels& kernels = *context.kernels.elementwise;
  if (!accumulate.stochastic || y == kF32) {
    parallel_elements(tensors, [&](auto at, int64_t, int64_t n) {
      kernels.add[x][y][y](at[0], at[1], at[1], n);
    });
    return;
  }
  const int32_t* random = integers_of(invocation[program::Accumulate::kRandom]);
  const base::PhiloxKey key =
      stream_key({accumulate.seed, accumulate.site, random[0], random[1]}, RandomPurpose::rounding);
  parallel_elements(tensors, [&](auto at, int64_t first, int64_t n) {
    kernels.accumulate_stochastically[x](at[0], reinterpret_cast<uint16_t*>(at[1]), n,
                                         {{key[0], key[1]}, first});
  });
}

void run(const program::AddBias&, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[program::AddBias::kX]);
  const Rows bias = flattened(rows_of(invocation[program::AddBias::kBias]));
  const Rows y = rows_of(invocation[program::AddBias::kY]);
  const auto add = context.kernels.elementwise->add[x.element][bias.element][y.element];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / x.columns);
  parallel_ranges(x.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) add(x.at(row), bias.at(0), y.at(row), x.columns);
  });
}

int64_t workspace_bytes(const program::SumRows&, const program::OperationView& view,
                        const CpuContext&) {
  const program::Shape& x = view[program::SumRows::kX].shape;
  return reduction_bytes(x.rows(), x.columns());
}

void run(const program::SumRows& sum_rows, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[program::SumRows::kX]);
  const Rows y = rows_of(invocation[program::SumRows::kY]);
  float* partials = invocation.workspace.as<float>();
  const int64_t block_rows = reduction_block_rows(x.rows);
  parallel_ranges(x.rows, block_rows, [&](int64_t begin, int64_t end) {
    context.kernels.elementwise->sum_rows[x.element](
        x.at(begin), x.stride, end - begin, x.columns,
        partials + begin / block_rows * reduction_stride(x.columns));
  });
  add_reduction_blocks(context.kernels, partials, reduction_blocks(x.rows), y, sum_rows.accumulate);
}

void run(const program::Zeros&, const Invocation& invocation, CpuContext&) {
  zero_rows(rows_of(invocation[program::Zeros::kY]));
}

void run(const program::Scale& scale, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[program::Scale::kX]),
                           rows_of(invocation[program::Scale::kY])};
  const auto multiply = context.kernels.elementwise->scale[tensors[0].element][tensors[1].element];
  parallel_elements(tensors,
                    [&](auto at, int64_t, int64_t n) { multiply(at[0], at[1], n, scale.factor); });
}

void run(const program::Dropout& dropout, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[program::Dropout::kX]);
  const Rows y = rows_of(invocation[program::Dropout::kY]);
  const int32_t* random = integers_of(invocation[program::Dropout::kRandom]);
  const base::PhiloxKey key = dropout_key({dropout.seed, dropout.site, random[0]});
  const auto apply = context.kernels.elementwise->dropout[x.element][y.element];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / x.columns);
  parallel_ranges(x.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    DropoutStream stream{.key = {key[0], key[1]},
                         .row = 0,
                         .position = 0,
                         .threshold = dropout_threshold(dropout.probability),
                         .scale = dropout_scale(dropout.probability)};
    for (int64_t token = begin; token < end; ++token) {
      stream.row = static_cast<uint32_t>(random[1] + token / dropout.row_length);
      stream.position = static_cast<uint32_t>(token % dropout.row_length);
      apply(x.at(token), y.at(token), x.columns, stream);
    }
  });
}

void run(const program::Cast&, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[program::Cast::kX]),
                           rows_of(invocation[program::Cast::kY])};
  const auto convert = context.kernels.elementwise->convert[tensors[0].element][tensors[1].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) { convert(at[0], at[1], n); });
}

}  // namespace

SNUG_CPU_KIND(Add);
SNUG_CPU_KIND(Accumulate);
SNUG_CPU_KIND(AddBias);
SNUG_CPU_KIND(SumRows, .workspace_bytes = workspace_bytes);
SNUG_CPU_KIND(Scale);
SNUG_CPU_KIND(Dropout);
SNUG_CPU_KIND(Cast);
SNUG_CPU_KIND(Zeros);

}  // namespace snug::backends::cpu
