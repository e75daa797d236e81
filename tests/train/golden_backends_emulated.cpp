// The CUDA backend, which open_cuda.cpp of this binary opens on the emulated device.
#include "golden_case.h"

namespace snug::test {

std::vector<std::string> golden_backends() { return {"cuda"}; }

}  // namespace snug::test
