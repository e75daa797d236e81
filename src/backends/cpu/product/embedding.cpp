#include <algorithm>
#include <span>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "base/error.h"
#include "program/kinds/product/embedding.h"

namespace snug::backends::cpu {
namespace {

// A token and its id in one number, which sorts by id, then by token.
constexpr uint64_t token_of(uint64_t entry) { return entry & 0xffffffffU; }
constexpr int64_t id_of(uint64_t entry) { return static_cast<int64_t>(entry >> 32); }

// Adds the rows of dy named by `entries`, which all have the same id, to that id's row of the
// table, through an fp32 sum so that a bf16 table is rounded once.
void add_token_rows(const ElementwiseKernels& kernels, const Rows& dy, const Rows& table,
                    std::span<const uint64_t> entries) {
  constexpr int64_t kColumns = 1024;
  alignas(64) std::array<float, kColumns> sum;
  for (int64_t begin = 0; begin < table.columns; begin += kColumns) {
    const int64_t n = std::min(kColumns, table.columns - begin);
    std::byte* row = table.at(id_of(entries[0]), begin);
    kernels.convert[dy.element][kF32](dy.at(static_cast<int64_t>(token_of(entries[0])), begin),
                                      sum.data(), n);
    for (const uint64_t entry : entries.subspan(1))
      kernels.add[dy.element][kF32][kF32](dy.at(static_cast<int64_t>(token_of(entry)), begin),
                                          sum.data(), sum.data(), n);
    kernels.add[kF32][table.element][table.element](sum.data(), row, row, n);
  }
}

// Adds the tokens' rows of dy to a column of a table that is stored transposed.
void add_token_columns(const Rows& dy, const Rows& table, std::span<const uint64_t> entries) {
  const int64_t id = id_of(entries[0]);
  for (int64_t j = 0; j < table.rows; ++j) {
    float sum = 0;
    for (const uint64_t entry : entries)
      sum += value_at(dy.at(static_cast<int64_t>(token_of(entry))), dy.element, j);
    std::byte* const row = table.at(j);
    set_value(row, table.element, id, value_at(row, table.element, id) + sum);
  }
}

int64_t ids_of(const Rows& table, bool transposed) {
  return transposed ? table.columns : table.rows;
}

void run(const program::Embedding& embedding, const Invocation& invocation, CpuContext& context) {
  const Rows table = rows_of(invocation[program::Embedding::kTable]);
  const int32_t* ids = integers_of(invocation[program::Embedding::kIds]);
  const Rows y = rows_of(invocation[program::Embedding::kY]);
  const int64_t known = ids_of(table, embedding.transposed);
  const auto convert = context.kernels.elementwise->convert[table.element][y.element];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / y.columns);
  parallel_ranges(y.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      SNUG_CHECK(ids[t] >= 0 && ids[t] < known, "id {} at {} in a table of {}", ids[t], t, known);
      if (!embedding.transposed) {
        convert(table.at(ids[t]), y.at(t), y.columns);
        continue;
      }
      for (int64_t j = 0; j < y.columns; ++j)
        set_value(y.at(t), y.element, j, value_at(table.at(j), table.element, ids[t]));
    }
  });
}

int64_t workspace_bytes(const program::EmbeddingGrad&, const program::OperationView& view,
                        const CpuContext&) {
  return view[program::EmbeddingGrad::kIds].shape.elements() * int64_t{sizeof(uint64_t)};
}

// Sorts the tokens by id in the workspace; then the rows of each id are summed in token order.
void run(const program::EmbeddingGrad& grad, const Invocation& invocation, CpuContext& context) {
  const Rows dy = rows_of(invocation[program::EmbeddingGrad::kDY]);
  const int32_t* ids = integers_of(invocation[program::EmbeddingGrad::kIds]);
  const Rows table = rows_of(invocation[program::EmbeddingGrad::kDTable]);
  const int64_t known = ids_of(table, grad.transposed);
  const std::span entries(invocation.workspace.as<uint64_t>(), static_cast<size_t>(dy.rows));
  for (int64_t t = 0; t < dy.rows; ++t) {
    SNUG_CHECK(ids[t] >= 0 && ids[t] < known, "id {} at {} in a table of {}", ids[t], t, known);
    entries[static_cast<size_t>(t)] =
        static_cast<uint64_t>(ids[t]) << 32 | static_cast<uint64_t>(t);
  }
  std::sort(entries.begin(), entries.end());
  if (!grad.accumulate) zero_rows(table);
  // A task handles the ids whose first entry is in its range of the sorted list.
  constexpr int64_t kEntriesPerTask = 32;
  parallel_ranges(dy.rows, kEntriesPerTask, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end);) {
      const int64_t id = id_of(entries[i]);
      size_t last = i + 1;
      while (last < entries.size() && id_of(entries[last]) == id) ++last;
      const auto tokens = entries.subspan(i, last - i);
      if (i > 0 && id_of(entries[i - 1]) == id) {
        // The id belongs to the previous task.
      } else if (grad.transposed) {
        add_token_columns(dy, table, tokens);
      } else {
        add_token_rows(*context.kernels.elementwise, dy, table, tokens);
      }
      i = last;
    }
  });
}

}  // namespace

SNUG_CPU_KIND(Embedding);
SNUG_CPU_KIND(EmbeddingGrad, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
