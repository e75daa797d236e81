// The CUDA backend. open_cuda.cpp opens it; in builds without it, open_cuda_absent.cpp says how to
// get it.
#pragma once

#include <memory>

#include "backends/backend.h"

namespace snug::backends {

// Throws UserError where it is not built or finds no device.
std::unique_ptr<Backend> open_cuda(const BackendOptions& options);
// The number of devices that open_cuda would find.
int count_cuda_devices();
inline bool has_cuda_device() { return count_cuda_devices() > 0; }

}  // namespace snug::backends
