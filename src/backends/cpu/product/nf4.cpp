#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/product/nf4_weight.h"
#include "backends/cpu/rows.h"
#include "base/error.h"
#include "program/kinds/product/nf4.h"

namespace snug::backends::cpu {
namespace {

// Codes in a task of a product, in bytes: reading them takes some ten microseconds, ten times the
// cost of a task, and a thread waits at most that long for another's last task.
constexpr int64_t kTaskBytes = int64_t{1} << 17;
// The number of outputs in a task is a multiple of those that kernels compute at a time.
constexpr int64_t kOutputsAtOnce = 16;
// Codes in a task on AMX tiles, in bytes. It is larger since a task's first outputs wait for
// memory, while later ones are prefetched.
constexpr int64_t kTileTaskBytes = int64_t{1} << 18;
// Steps of rows that a thread arranges at a time: a few microseconds each.
constexpr int64_t kStepsPerTask = 4;

void run(const program::DequantizeNf4& dequantize, const Invocation& invocation,
         CpuContext& context) {
  const Buffer& w = invocation[program::DequantizeNf4::kW];
  const Rows values = one_row_of(w);
  dequantize_elements(weight_of(dequantize, invocation), 0, values.columns, w.dtype, values.data,
                      context);
}

// Products that read the codes once for all rows, for decoding: a few rows, and on AMX tiles some
// more (thin). For more rows the weight is dequantised first.
bool runs(program::ProductAlgorithm algorithm, const program::OperationView& view,
          const CpuContext& context) {
  const program::Tensor& x = view[program::MatmulNf4::kX];
  if (x.shape.columns() % program::kNf4BlockSize != 0) return false;
  if (algorithm == program::ProductAlgorithm::few_rows)
    return x.shape.rows() <= context.kernels.nf4->most_rows[element_of(x.dtype)];
  return algorithm == program::ProductAlgorithm::thin && context.isa >= Isa::amx &&
         x.dtype == base::DType::bf16 && x.shape.rows() <= kNf4TileRows;
}

// Even with AMX tiles, up to four rows go to the kernel for few rows: when weights come from
// memory, a token for each of four sequences took 60 ms with it and 80 ms with tiles (shape of
// Llama 3.2 1B, two cores).
program::ProductAlgorithm algorithm_of(const program::OperationView& view,
                                       const CpuContext& context) {
  using enum program::ProductAlgorithm;
  constexpr int64_t kFewOnTiles = 4;
  const bool are_few = view[program::MatmulNf4::kX].shape.rows() <= kFewOnTiles;
  return are_few || !runs(thin, view, context) ? few_rows : thin;
}

bool supports(const program::MatmulNf4& matmul, const program::OperationView& view,
              const CpuContext& context) {
  return !matmul.addend && runs(algorithm_of(view, context), view, context);
}

void require_runs(const program::MatmulNf4& matmul, const program::OperationView& view,
                  const CpuContext& context) {
  SNUG_CHECK(runs(matmul.algorithm, view, context),
             "a product with a stored weight by algorithm {}, which does not compute it here",
             base::word_of(matmul.algorithm));
}

// Room for x in the type and order of the kernel.
int64_t workspace_bytes(const program::MatmulNf4& matmul, const program::OperationView& view,
                        const CpuContext& context) {
  require_runs(matmul, view, context);
  const program::Tensor& x = view[program::MatmulNf4::kX];
  if (matmul.algorithm == program::ProductAlgorithm::thin)
    return context.kernels.nf4_tiles->arranged_bytes(x.shape.rows(), x.shape.columns());
  return x.shape.rows() *
         context.kernels.nf4->arranged_bytes[element_of(x.dtype)](x.shape.columns());
}

program::MatmulNf4 decide(const program::MatmulNf4& matmul, const program::OperationView& view,
                          const CpuContext& context) {
  program::MatmulNf4 decided = matmul;
  decided.algorithm = algorithm_of(view, context);
  return decided;
}

// Nothing is kept, but an algorithm that cannot compute this product here is refused.
std::unique_ptr<Prepared> prepare(const program::MatmulNf4& matmul,
                                  const program::OperationView& view, CpuContext& context) {
  require_runs(matmul, view, context);
  return nullptr;
}

// Splits `outputs` outputs into tasks and calls multiply with each task's part of the product, on
// all threads.
template <typename Product, typename Multiply>
void multiply_in_parts(const Product& product, int64_t outputs, int64_t outputs_per_task,
                       const Multiply& multiply) {
  parallel_ranges(outputs, outputs_per_task, [&](int64_t begin, int64_t end) {
    Product part = product;
    part.begin = begin;
    part.end = end;
    multiply(part);
  });
}

void multiply_few_rows(const program::MatmulNf4& matmul, const Invocation& invocation,
                       const CpuContext& context) {
  const Nf4Kernels& kernels = *context.kernels.nf4;
  const Rows x = rows_of(invocation[program::MatmulNf4::kX]);
  const Rows y = rows_of(invocation[program::MatmulNf4::kY]);
  const int64_t row_bytes = kernels.arranged_bytes[x.element](x.columns);
  std::byte* arranged = invocation.workspace.data;
  for (int64_t row = 0; row < x.rows; ++row)
    kernels.arrange_x[x.element](x.at(row), arranged + row * row_bytes, x.columns);
  const Nf4Product product{.weight = weight_of(matmul, invocation),
                           .in = x.columns,
                           .begin = 0,
                           .end = 0,
                           .x = arranged,
                           .rows = x.rows,
                           .y = y.data,
                           .y_stride = y.stride};
  const int64_t outputs =
      kOutputsAtOnce *
      std::max<int64_t>(1, kTaskBytes / program::nf4_code_bytes(kOutputsAtOnce * x.columns));
  multiply_in_parts(product, y.columns, outputs, kernels.multiply[x.element][y.element]);
  invocation.note_decision<&program::MatmulNf4::algorithm>(program::ProductAlgorithm::few_rows);
}

void multiply_on_tiles(const program::MatmulNf4& matmul, const Invocation& invocation,
                       const CpuContext& context) {
  const Nf4TileKernels& kernels = *context.kernels.nf4_tiles;
  const Rows x = rows_of(invocation[program::MatmulNf4::kX]);
  const Rows y = rows_of(invocation[program::MatmulNf4::kY]);
  auto* const arranged = reinterpret_cast<uint16_t*>(invocation.workspace.data);
  const Nf4TileRows rows = {.x = reinterpret_cast<const uint16_t*>(x.data),
                            .stride = x.stride,
                            .rows = x.rows,
                            .in = x.columns};
  parallel_ranges(ceil_div(x.columns, kNf4TileStep), kStepsPerTask,
                  [&](int64_t begin, int64_t end) { kernels.arrange(rows, begin, end, arranged); });
  const Nf4TileProduct product{.weight = weight_of(matmul, invocation),
                               .in = x.columns,
                               .begin = 0,
                               .end = 0,
                               .x = arranged,
                               .rows = x.rows,
                               .y = y.data,
                               .y_stride = y.stride};
  const int64_t outputs =
      kNf4TileOutputs *
      std::max<int64_t>(1, kTileTaskBytes / program::nf4_code_bytes(kNf4TileOutputs * x.columns));
  multiply_in_parts(product, y.columns, outputs, kernels.multiply[y.element]);
  invocation.note_decision<&program::MatmulNf4::algorithm>(program::ProductAlgorithm::thin);
}

void run(const program::MatmulNf4& matmul, const Invocation& invocation, CpuContext& context) {
  if (matmul.algorithm == program::ProductAlgorithm::thin)
    multiply_on_tiles(matmul, invocation, context);
  else
    multiply_few_rows(matmul, invocation, context);
}

}  // namespace

SNUG_CPU_KIND(DequantizeNf4);
SNUG_CPU_KIND(MatmulNf4, .supports = supports, .decide = decide, .workspace_bytes = workspace_bytes,
              .prepare = prepare);

}  // namespace snug::backends::cpu
