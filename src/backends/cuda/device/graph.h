// Work recorded from a stream as a CUDA graph: one launch instead of one for each kernel. Not
// thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "backends/backend.h"
#include "backends/cuda/device/cuda_check.h"

namespace snug::backends::cuda {

// Records what `operations` queues on the stream. It must not wait for the stream, and its kernels
// must be loaded. The stream must outlive the recording. Throws UserError where the device does not
// have the memory that a graph takes, which plans keep free (graph_bytes).
std::unique_ptr<Recording> record_graph(const std::function<void()>& operations,
                                        cudaStream_t stream);

}  // namespace snug::backends::cuda
