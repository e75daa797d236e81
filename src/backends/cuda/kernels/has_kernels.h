// Whether kernels were compiled for the device in use.
#pragma once

namespace snug::backends::cuda {

bool has_kernels();
// The compute capability, times ten, that they were written for: less than the device's where the
// driver compiled them for it; 0 where there are none. Both throw UserError where the device has no
// memory to load one.
int kernel_capability();

}  // namespace snug::backends::cuda
