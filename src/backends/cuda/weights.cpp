// What the backend does to weights before any program runs.
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/kernels/quantize_nf4.h"
#include "backends/cuda/kernels/random_values.h"
#include "backends/cuda/matrices.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

void require_multiple(const void* address, uintptr_t bytes) {
  SNUG_CHECK(reinterpret_cast<uintptr_t>(address) % bytes == 0, "an address is no multiple of {}",
             bytes);
}

}  // namespace

void CudaBackend::fill(const Buffer& tensor, const RandomValues& values, int64_t first) {
  Matrix matrix = matrix_of(tensor);
  const Walk walk = walk_flat({&matrix});
  SNUG_CHECK(walk.rows <= 1 && first % kValueGroup == 0, "a weight of {} rows from element {}",
             walk.rows, first);
  make_random_values({walk, matrix.operand, values, first / kValueGroup}, context_->stream.get());
}

void CudaBackend::quantize_nf4(const Buffer& values, uint8_t* codes, float* absmax) {
  SNUG_CHECK(base::size_of(values.dtype) == 2 || values.dtype == base::DType::f32, "no NF4 from {}",
             base::name_of(values.dtype));
  require_multiple(values.data, 16);
  require_multiple(codes, 4);
  context_->device.use();  // called by threads that read weights
  cuda::quantize_nf4({values.data, values.dtype, values.elements(), codes, absmax},
                     context_->stream.get());
}

}  // namespace snug::backends::cuda
