// Stages: sums of squares over rows and columns; moments and their inverse roots; the root mean
// square of the update; the step. A vector is a matrix of one row whose column moments are its
// moments.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/formulas/decayed_share.h"
#include "backends/operation_checks.h"
#include "program/kinds/optimizer/adafactor.h"

namespace snug::backends::cpu {
namespace {

using program::Adafactor;

// The share of the new squares in the moments at a step, counted from 1: 1 - beta =
// step^decay_rate.
float share_of_step(float decay_rate, int32_t step) {
  return static_cast<float>(std::pow(static_cast<double>(step), static_cast<double>(decay_rate)));
}

// The tasks of a pass: (blocks of rows) x (runs of columns).
struct AdafactorGrid {
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t block_rows() const { return reduction_block_rows(rows); }
  int64_t blocks() const { return reduction_blocks(rows); }
  int64_t runs() const { return ceil_div(columns, kElementsPerTask); }
  int64_t tasks() const { return blocks() * runs(); }
};

AdafactorGrid grid_of(const Adafactor& adafactor, const program::Shape& weight) {
  if (adafactor.factored) return {weight[0], weight[1]};
  return {1, weight.elements()};
}

// The offsets in bytes of the passes' results in the scratch.
struct AdafactorScratch {
  explicit AdafactorScratch(const AdafactorGrid& grid)
      : row_sums(reduction_bytes(grid.rows, grid.columns)),
        inverse_columns(row_sums + whole_lines(4 * grid.rows * grid.runs())),
        inverse_rows(inverse_columns + whole_lines(4 * grid.columns)),
        sizes(inverse_rows + whole_lines(4 * grid.rows)),
        end(sizes + whole_lines(8 * grid.tasks())) {}
  int64_t column_sums = 0;  // (blocks, columns)
  int64_t row_sums;         // (rows, runs)
  int64_t inverse_columns;
  int64_t inverse_rows;
  int64_t sizes;  // (tasks), doubles
  int64_t end;
};

class AdafactorStep {
 public:
  AdafactorStep(const Adafactor& adafactor, const Invocation& invocation, CpuContext& context)
      : adafactor_(adafactor),
        context_(context),
        kernels_(*context.kernels.adafactor),
        grid_(grid_of(adafactor, invocation[Adafactor::kWeight].shape)),
        scratch_(grid_),
        memory_(invocation.workspace.as<std::byte>()),
        gradient_(one_row_of(invocation[Adafactor::kGradient])),
        weight_(one_row_of(invocation[Adafactor::kWeight])),
        master_(
            one_row_of(invocation[adafactor.has_master ? Adafactor::kMaster : Adafactor::kWeight])),
        rows_(invocation[Adafactor::kRows].as<float>()),
        columns_(adafactor.factored ? invocation[Adafactor::kColumns].as<float>() : rows_),
        factor_(*invocation[Adafactor::kFactor].as<const float>()),
        rate_(*invocation[Adafactor::kLearningRate].as<const float>()),
        share_(share_of_step(adafactor.decay_rate, *integers_of(invocation[Adafactor::kStep]))) {}

  void run() {
    if (std::isnan(factor_)) return;
    sum_squares();
    advance_columns();
    if (adafactor_.factored)
      advance_rows();
    else
      floats(scratch_.inverse_rows)[0] = 1.0F;
    step(rate_ / clipping());
  }

 private:
  float* floats(int64_t offset) const { return reinterpret_cast<float*>(memory_ + offset); }

  // Calls f(row, first column, columns, task); a task's rows come in order.
  template <typename F>
  void for_each_run(const F& f) const {
    parallel_for(grid_.tasks(), [&](int64_t task) {
      const int64_t first = task / grid_.runs() * grid_.block_rows();
      const int64_t last = std::min(grid_.rows, first + grid_.block_rows());
      const int64_t column = task % grid_.runs() * kElementsPerTask;
      const int64_t n = std::min(kElementsPerTask, grid_.columns - column);
      for (int64_t row = first; row < last; ++row) f(row, column, n, task);
    });
  }

  std::byte* at(const Rows& tensor, int64_t row, int64_t column) const {
    return tensor.at(0, row * grid_.columns + column);
  }

  void sum_squares() const {
    const auto sum = kernels_.sum_squares[gradient_.element];
    for_each_run([&](int64_t row, int64_t column, int64_t n, int64_t) {
      float* columns = floats(scratch_.column_sums) +
                       row / grid_.block_rows() * reduction_stride(grid_.columns) + column;
      if (row % grid_.block_rows() == 0) std::fill(columns, columns + n, 0.0F);
      floats(scratch_.row_sums)[row * grid_.runs() + column / kElementsPerTask] =
          sum(at(gradient_, row, column), factor_, adafactor_.epsilon, columns, n);
    });
  }

  void advance_columns() const {
    const float* sums = floats(scratch_.column_sums);
    float* inverse = floats(scratch_.inverse_columns);
    const Rows total{reinterpret_cast<std::byte*>(inverse), kF32, 1, grid_.columns, grid_.columns};
    add_reduction_blocks(context_.kernels, sums, grid_.blocks(), total, false);
    parallel_ranges(grid_.columns, kElementsPerTask, [&](int64_t begin, int64_t end) {
      kernels_.advance_columns({.squares = inverse + begin,
                                .of_square = 1.0F / static_cast<float>(grid_.rows),
                                .keep = 1.0F - share_,
                                .share = share_,
                                .state = columns_ + begin,
                                .inverse = inverse + begin,
                                .n = end - begin});
    });
  }

  void advance_rows() const {
    double total = 0;
    for (int64_t row = 0; row < grid_.rows; ++row) {
      const float* sums = floats(scratch_.row_sums) + row * grid_.runs();
      double sum = 0;
      for (int64_t run = 0; run < grid_.runs(); ++run) sum += static_cast<double>(sums[run]);
      const auto mean = static_cast<float>(sum / static_cast<double>(grid_.columns));
      rows_[row] = rows_[row] * (1.0F - share_) + mean * share_;
      total += static_cast<double>(rows_[row]);
    }
    const double mean = total / static_cast<double>(grid_.rows);
    float* inverse = floats(scratch_.inverse_rows);
    for (int64_t row = 0; row < grid_.rows; ++row)
      inverse[row] = static_cast<float>(std::sqrt(mean / static_cast<double>(rows_[row])));
  }

  AdafactorRow row_of(int64_t row, int64_t column, int64_t n, float scale) const {
    return {.gradient = at(gradient_, row, column),
            .inverse = floats(scratch_.inverse_columns) + column,
            .scale = factor_ * floats(scratch_.inverse_rows)[row] * scale,
            .n = n};
  }

  // The divisor that clips the update.
  float clipping() const {
    auto* sizes = reinterpret_cast<double*>(memory_ + scratch_.sizes);
    const auto size_of_update = kernels_.size_of_update[gradient_.element];
    std::fill(sizes, sizes + grid_.tasks(), 0.0);
    for_each_run([&](int64_t row, int64_t column, int64_t n, int64_t task) {
      sizes[task] += static_cast<double>(size_of_update(row_of(row, column, n, 1.0F)));
    });
    double squares = 0;
    for (int64_t task = 0; task < grid_.tasks(); ++task) squares += sizes[task];
    const double size = std::sqrt(squares / static_cast<double>(grid_.rows * grid_.columns));
    return std::max(1.0F, static_cast<float>(size) / adafactor_.clip_threshold);
  }

  void step(float rate) const {
    const auto advance = kernels_.step[gradient_.element][weight_.element];
    const float keep = decayed_share(rate_, adafactor_.weight_decay);
    for_each_run([&](int64_t row, int64_t column, int64_t n, int64_t) {
      advance(row_of(row, column, n, rate),
              {.weight = at(weight_, row, column),
               .master = reinterpret_cast<float*>(at(master_, row, column)),
               .keep = keep});
    });
  }

  const Adafactor& adafactor_;
  CpuContext& context_;
  const AdafactorKernels& kernels_;
  const AdafactorGrid grid_;
  const AdafactorScratch scratch_;
  std::byte* const memory_;
  const Rows gradient_;
  const Rows weight_;
  const Rows master_;
  float* const rows_;
  float* const columns_;
  const float factor_;
  const float rate_;
  const float share_;  // share of the new squares in the moments
};

bool supports(const Adafactor& adafactor, const program::OperationView& view, const CpuContext&) {
  const auto is_f32 = [&](const program::Operand<Adafactor>& operand) {
    return view[operand].dtype == base::DType::f32;
  };
  return are_floats<Adafactor>(view, {Adafactor::kGradient, Adafactor::kWeight}) &&
         is_f32(Adafactor::kRows) && (!adafactor.factored || is_f32(Adafactor::kColumns)) &&
         is_f32(adafactor.has_master ? Adafactor::kMaster : Adafactor::kWeight);
}

int64_t workspace_bytes(const Adafactor& adafactor, const program::OperationView& view,
                        const CpuContext&) {
  return AdafactorScratch(grid_of(adafactor, view[Adafactor::kWeight].shape)).end;
}

void run(const Adafactor& adafactor, const Invocation& invocation, CpuContext& context) {
  AdafactorStep(adafactor, invocation, context).run();
}

}  // namespace

SNUG_CPU_KIND(Adafactor, .supports = supports, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
