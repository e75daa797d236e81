// Every call of the CUDA runtime and of cuBLASLt goes through these macros: a failure is a bug in
// Snug or a broken device, and aborts with the expression and the library's name for the error.
// Running out of memory is different: arena.cpp checks for it first, and whatever else takes memory
// goes through CUDA_CHECK_MEMORY.
#pragma once

#include <cuda_runtime_api.h>

namespace snug::backends::cuda {

[[noreturn]] void cuda_failed(const char* file, int line, const char* expression,
                              cudaError_t error);
// Clears the error and throws UserError: the GPU has no memory left for `what`.
[[noreturn]] void no_memory_for(const char* what);

}  // namespace snug::backends::cuda

#define CUDA_CHECK(expression)                                                               \
  do {                                                                                       \
    const cudaError_t snug_cuda_error = (expression);                                        \
    if (snug_cuda_error != cudaSuccess)                                                      \
      ::snug::backends::cuda::cuda_failed(__FILE__, __LINE__, #expression, snug_cuda_error); \
  } while (false)

// Checks a call that creates `what` ("an event"): running out of memory is a user error. All of
// these calls are made before the first step.
#define CUDA_CHECK_MEMORY(what, expression)                                                       \
  do {                                                                                            \
    const cudaError_t snug_cuda_made = (expression);                                              \
    if (snug_cuda_made == cudaErrorMemoryAllocation) ::snug::backends::cuda::no_memory_for(what); \
    CUDA_CHECK(snug_cuda_made);                                                                   \
  } while (false)
