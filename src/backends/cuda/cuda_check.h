// Every call of the CUDA runtime and of cuBLASLt goes through these: what fails is a bug in Snug or
// a broken device, and aborts with the expression and the library's name for the error. Running out
// of memory is no such failure: arena.cpp looks at it first.
#pragma once

#include <cuda_runtime_api.h>

namespace snug::backends::cuda {

[[noreturn]] void cuda_failed(const char* file, int line, const char* expression,
                              cudaError_t error);

}  // namespace snug::backends::cuda

#define CUDA_CHECK(expression)                                                               \
  do {                                                                                       \
    const cudaError_t snug_cuda_error = (expression);                                        \
    if (snug_cuda_error != cudaSuccess)                                                      \
      ::snug::backends::cuda::cuda_failed(__FILE__, __LINE__, #expression, snug_cuda_error); \
  } while (false)
