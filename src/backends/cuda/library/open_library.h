// Opens NVIDIA's shared libraries when they are needed, from wherever they are: where the loader
// looks (LD_LIBRARY_PATH, the distribution), in the toolkit that Snug was built with, or in the
// active Python environment.
#pragma once

#include <string>

#include "base/error.h"

namespace snug::backends::cuda {

// A handle of dlopen, which is never closed; null where the library is not found.
void* open_library(const std::string& name);
// The address of a function. CHECKs that the library has it.
void* find_function(void* library, const char* name);

template <typename Function>
void find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(find_function(library, name));
}

}  // namespace snug::backends::cuda
