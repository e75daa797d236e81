// Whether kernels were compiled for the current device.
#pragma once

namespace snug::backends::cuda {

bool has_kernels();
// The compute capability, times ten, of the compiled kernels: lower than the device's where the
// driver compiles their PTX; 0 where there are none. Both functions throw UserError where the
// device does not have the memory to load one.
int kernel_capability();

}  // namespace snug::backends::cuda
