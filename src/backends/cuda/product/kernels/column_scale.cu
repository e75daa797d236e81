#include "backends/cuda/product/kernels/column_scale.h"

#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/norm/kernels/norm_rows.cuh"

namespace snug::backends::cuda {
namespace {

template <int kCount>
struct ScaleColumns {
  ScaleColumnsRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> value = load<kCount>(run.x, row * run.x.stride + column);
    Elements<kCount> factor = of_columns(run.gain, column);
    if (run.divisor.data != nullptr) {
      const Elements<kCount> divisor = of_columns(run.divisor, column);
      for (int i = 0; i < kCount; ++i) factor.at[i] /= divisor.at[i];
    }
    for (int i = 0; i < kCount; ++i) value.at[i] *= factor.at[i];
    store(run.y, row * run.y.stride + column, value);
  }
  __device__ Elements<kCount> of_columns(const DeviceRows& gains, int64_t column) const {
    if (run.width == 1) return load<kCount>(gains, column);
    Elements<kCount> values;
    for (int i = 0; i < kCount; ++i) values.at[i] = load_one(gains, (column + i) / run.width);
    return values;
  }
};

// One block per row.
__global__ void row_norms_kernel(RowNormsRun run) {
  const int64_t row = blockIdx.x;
  float squares = 0.0F;
  over_row<1>(run.columns, [&](int64_t column) {
    const int64_t offset =
        run.transposed ? column * run.w.stride + row : row * run.w.stride + column;
    float product = 0.0F;
    for (int64_t k = 0; k < run.rank; ++k)
      product +=
          load_one(run.b, row * run.b.stride + k) * load_one(run.a, k * run.a.stride + column);
    const float value = load_one(run.w, offset) + run.alpha * product;
    squares += value * value;
  });
  squares = block_sum(squares);
  if (threadIdx.x == 0) run.norms[row] = sqrtf(squares);
}

}  // namespace

void scale_columns(const ScaleColumnsRun& run, cudaStream_t stream) {
  over_elements<ScaleColumns>(run, stream);
}

void row_norms(const RowNormsRun& run, cudaStream_t stream) {
  if (run.rows == 0) return;
  launch(row_norms_kernel, norm_rows_shape({run.rows, run.columns, false}, run.rows), stream, run);
}

}  // namespace snug::backends::cuda
