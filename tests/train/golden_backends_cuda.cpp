// The CUDA backend: of a card, or where this binary has open_cuda.cpp of its own the emulated
// device's.
#include "golden_case.h"

namespace snug::test {

std::vector<std::string> golden_backends() { return {"cuda"}; }

}  // namespace snug::test
