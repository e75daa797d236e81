#include <cmath>
#include <limits>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/formulas/random_bits.h"
#include "backends/operation_checks.h"
#include "base/error.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::backends::cpu {
namespace {

using program::AdamW;

int64_t norm_blocks(int64_t rows, int64_t columns) {
  return rows * ceil_div(columns, kElementsPerTask);
}

float scalar_of(const Buffer& buffer) {
  SNUG_CHECK(buffer.dtype == base::DType::f32, "a scalar is {}", base::name_of(buffer.dtype));
  return *buffer.as<const float>();
}

AdamWStep step_of(const AdamW& adamw, const Invocation& invocation) {
  const int32_t count = *integers_of(invocation[AdamW::kStep]);
  const base::PhiloxKey key =
      stream_key({adamw.seed, adamw.site, count, 0}, RandomPurpose::rounding);
  return {.factor = scalar_of(invocation[AdamW::kFactor]),
          .beta1 = adamw.beta1,
          .beta2 = adamw.beta2,
          .epsilon = adamw.epsilon,
          .of_step = adamw_factors({.learning_rate = scalar_of(invocation[AdamW::kLearningRate]),
                                    .weight_decay = adamw.weight_decay,
                                    .beta1 = adamw.beta1,
                                    .beta2 = adamw.beta2,
                                    .epsilon = adamw.epsilon,
                                    .step = count}),
          .key = {key[0], key[1]}};
}

// One double per block of elements of each gradient.
int64_t workspace_bytes(const program::GlobalNorm&, const program::OperationView& view,
                        const CpuContext&) {
  int64_t blocks = 0;
  for (const program::TensorId gradient : view.operation.reads) {
    const program::Shape& shape = view.program.tensor(gradient).shape;
    // Enough for both contiguous gradients and views, as run() may see either.
    blocks +=
        std::max(norm_blocks(shape.rows(), shape.columns()), norm_blocks(1, shape.elements()));
  }
  return blocks * int64_t{sizeof(double)};
}

void run(const program::GlobalNorm&, const Invocation& invocation, CpuContext& context) {
  auto* partials = invocation.workspace.as<double>();
  int64_t used = 0;
  for (const Buffer& buffer : invocation.all(program::Access::read)) {
    const Rows x = flattened(rows_of(buffer));
    const auto sum_of_squares = context.kernels.optimizer->sum_of_squares[x.element];
    const int64_t blocks_per_row = ceil_div(x.columns, kElementsPerTask);
    parallel_for(x.rows * blocks_per_row, [&](int64_t block) {
      const int64_t begin = block % blocks_per_row * kElementsPerTask;
      const int64_t n = std::min(kElementsPerTask, x.columns - begin);
      partials[used + block] =
          static_cast<double>(sum_of_squares(x.at(block / blocks_per_row, begin), n));
    });
    used += x.rows * blocks_per_row;
  }
  double sum = 0;
  for (int64_t block = 0; block < used; ++block) sum += partials[block];
  *invocation[program::GlobalNorm::kNorm].as<float>() = static_cast<float>(std::sqrt(sum));
}

void run(const program::ClipFactor& clip, const Invocation& invocation, CpuContext&) {
  const float norm = scalar_of(invocation[program::ClipFactor::kNorm]);
  float factor = 1.0F;
  if (clip.max_norm > 0.0F) factor = std::min(1.0F, clip.max_norm / (norm + 1e-6F));
  if (!std::isfinite(norm)) factor = std::numeric_limits<float>::quiet_NaN();
  *invocation[program::ClipFactor::kFactor].as<float>() = factor;
}

bool supports(const program::GlobalNorm&, const program::OperationView& view, const CpuContext&) {
  return reads_floats(view);
}

bool supports(const AdamW& adamw, const program::OperationView& view, const CpuContext&) {
  if (!are_floats<AdamW>(view, {AdamW::kGradient, AdamW::kWeight})) return false;
  const auto type = [&](const program::Operand<AdamW>& operand) { return view[operand].dtype; };
  const base::DType moments = adamw.stochastic ? base::DType::bf16 : base::DType::f32;
  if (type(AdamW::kFirstMoment) != moments || type(AdamW::kSecondMoment) != moments) return false;
  if (adamw.stochastic) return !adamw.has_master && type(AdamW::kWeight) == moments;
  return type(adamw.has_master ? AdamW::kMaster : AdamW::kWeight) == base::DType::f32;
}

void run(const AdamW& adamw, const Invocation& invocation, CpuContext& context) {
  const AdamWStep step = step_of(adamw, invocation);
  const std::array tensors{
      one_row_of(invocation[AdamW::kGradient]), one_row_of(invocation[AdamW::kWeight]),
      one_row_of(invocation[AdamW::kFirstMoment]), one_row_of(invocation[AdamW::kSecondMoment]),
      one_row_of(invocation[adamw.has_master ? AdamW::kMaster : AdamW::kWeight])};
  if (std::isnan(step.factor)) return;
  const OptimizerKernels& kernels = *context.kernels.optimizer;
  const auto advance = adamw.stochastic ? kernels.adamw_stochastic[tensors[0].element]
                                        : kernels.adamw[tensors[0].element][tensors[1].element];
  parallel_elements(tensors, [&](auto at, int64_t first, int64_t n) {
    advance(step, {.gradient = at[0],
                   .weight = at[1],
                   .first_moment = at[2],
                   .second_moment = at[3],
                   .master = reinterpret_cast<float*>(at[4]),
                   .first = invocation[AdamW::kWeight].first + first,
                   .n = n});
  });
}

}  // namespace

SNUG_CPU_KIND(GlobalNorm, .supports = supports, .workspace_bytes = workspace_bytes);
SNUG_CPU_KIND(ClipFactor);
SNUG_CPU_KIND(AdamW, .supports = supports);

}  // namespace snug::backends::cpu
