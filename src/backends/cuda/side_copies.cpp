#include "backends/cuda/side_copies.h"

namespace snug::backends::cuda {

SideCopies::SideCopies() {
  CUDA_CHECK(cudaEventCreateWithFlags(&reached_, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming));
}

SideCopies::~SideCopies() {
  cudaEventDestroy(reached_);
  cudaEventDestroy(copied_);
}

void SideCopies::begin(void* to, const void* from, int64_t bytes, cudaStream_t work) {
  CUDA_CHECK(cudaEventRecord(reached_, work));
  CUDA_CHECK(cudaStreamWaitEvent(copies_.get(), reached_, 0));
  CUDA_CHECK(
      cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, copies_.get()));
}

// An event stands for what its stream was given when it was last recorded.
void SideCopies::await(cudaStream_t work) {
  CUDA_CHECK(cudaEventRecord(copied_, copies_.get()));
  CUDA_CHECK(cudaStreamWaitEvent(work, copied_, 0));
}

}  // namespace snug::backends::cuda
