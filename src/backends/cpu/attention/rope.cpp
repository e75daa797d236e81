#include <cmath>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "program/kinds/attention/rope.h"

namespace snug::backends::cpu {
namespace {

bool supports(const program::RotaryTable&, const program::OperationView& view, const CpuContext&) {
  return view[program::RotaryTable::kInverseFrequency].dtype == base::DType::f32 &&
         view[program::RotaryTable::kTable].dtype == base::DType::f32;
}

// Angles are computed in double precision: an angle of 10^5 would lose five of fp32's seven digits.
void run(const program::RotaryTable& rotary, const Invocation& invocation, CpuContext&) {
  const int32_t* positions = integers_of(invocation[program::RotaryTable::kPositions]);
  const Rows frequencies = flattened(rows_of(invocation[program::RotaryTable::kInverseFrequency]));
  const Rows table = rows_of(invocation[program::RotaryTable::kTable]);
  const int64_t half = frequencies.columns;
  const auto* frequency = reinterpret_cast<const float*>(frequencies.data);
  constexpr int64_t kRowsPerTask = 16;
  parallel_ranges(table.rows, kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      auto* row = reinterpret_cast<float*>(table.at(t));
      const auto factor = static_cast<float>(row_factor(rotary, positions[t]));
      for (int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(positions[t]) * static_cast<double>(frequency[i]);
        row[i] = static_cast<float>(std::cos(angle)) * factor;
        row[half + i] = static_cast<float>(std::sin(angle)) * factor;
      }
    }
  });
}

bool supports(const program::Rope&, const program::OperationView& view, const CpuContext&) {
  return view[program::Rope::kX].dtype == view[program::Rope::kY].dtype &&
         view[program::Rope::kTable].dtype == base::DType::f32;
}

void run(const program::Rope& rope, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[program::Rope::kX]);
  const Rows table = rows_of(invocation[program::Rope::kTable]);
  const Rows y = rows_of(invocation[program::Rope::kY]);
  const RopeKernels& kernels = *context.kernels.rope;
  const auto rotate = (rope.interleaved ? kernels.rotate_neighbours : kernels.rotate)[x.element];
  const int64_t heads = x.columns / rope.head_dim;
  const RopeForm form{.heads = rope.rotated_heads > 0 ? rope.rotated_heads : heads,
                      .head_dim = rope.head_dim,
                      .width = rotated_width(rope),
                      .direction = rope.inverse ? -1.0F : 1.0F};
  const int64_t rotated = form.heads * form.head_dim;
  const auto passed_bytes = static_cast<size_t>((x.columns - rotated) * x.element_bytes());
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / x.columns);
  parallel_ranges(x.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      rotate(x.at(t), reinterpret_cast<const float*>(table.at(t)), y.at(t), form);
      if (passed_bytes > 0 && x.at(t) != y.at(t))
        std::memcpy(y.at(t, rotated), x.at(t, rotated), passed_bytes);
    }
  });
}

}  // namespace

SNUG_CPU_KIND(RotaryTable, .supports = supports);
SNUG_CPU_KIND(Rope, .supports = supports);

}  // namespace snug::backends::cpu
