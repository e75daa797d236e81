// Copies that go on beside the kernels of a stream, on one of their own and in the order in which
// they are begun. Of one thread. Can be recorded for a graph, if all that is begun is awaited in
// it.
#pragma once

#include <cstdint>

#include "backends/cuda/stream.h"

namespace snug::backends::cuda {

class SideCopies {
 public:
  SideCopies();
  SideCopies(const SideCopies&) = delete;
  SideCopies& operator=(const SideCopies&) = delete;
  ~SideCopies();

  // Copies once all that `work` was given is done. Host memory must be pinned.
  void begin(void* to, const void* from, int64_t bytes, cudaStream_t work);
  // What `work` is given from here on waits for all copies begun so far.
  void await(cudaStream_t work);

 private:
  Stream copies_;
  cudaEvent_t reached_ = nullptr;  // on the stream of kernels: a copy may begin
  cudaEvent_t copied_ = nullptr;
};

}  // namespace snug::backends::cuda
