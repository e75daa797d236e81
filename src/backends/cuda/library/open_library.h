// Opens NVIDIA's shared libraries when they are needed, wherever they lie: where the loader looks
// (LD_LIBRARY_PATH, the distribution), next to the toolkit that Snug was built with, or in the
// Python environment that is active.
#pragma once

#include <string>

#include "base/error.h"

namespace snug::backends::cuda {

// The handle of dlopen, never closed; null where it is nowhere.
void* open_library(const std::string& name);
// The address of a function. CHECKs that the library has it.
void* find_function(void* library, const char* name);

template <typename Function>
void find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(find_function(library, name));
}

}  // namespace snug::backends::cuda
