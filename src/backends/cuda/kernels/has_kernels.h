// Whether kernels were compiled for the device in use.
#pragma once

namespace snug::backends::cuda {

bool has_kernels();
// The compute capability, times ten, that they were written for: less than the device's where the
// driver compiled them for it. Requires has_kernels().
int kernel_capability();

}  // namespace snug::backends::cuda
