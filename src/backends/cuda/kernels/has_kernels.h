// Whether kernels were compiled for the device in use.
#pragma once

namespace snug::backends::cuda {

bool has_kernels();

}  // namespace snug::backends::cuda
