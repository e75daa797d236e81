// Attention through cuDNN: from an operation to the library's plan, the tables it reads and what it
// leaves undone. needs/attention.h says which operations.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/cuda/context.h"

namespace snug::backends::cuda {

// Null for an operation that own kernels do: so too where the library refuses it or asks for more
// scratch than was planned, which is said on stderr.
std::unique_ptr<Prepared> prepare_cudnn(const program::Attention& attention,
                                        const program::OperationView& view, CudaContext& context);
std::unique_ptr<Prepared> prepare_cudnn(const program::AttentionGrad& grad,
                                        const program::OperationView& view, CudaContext& context);

// Of an invocation that has been prepared so.
void run_cudnn(const program::Attention& attention, const Invocation& invocation,
               CudaContext& context);
void run_cudnn(const program::AttentionGrad& grad, const Invocation& invocation,
               CudaContext& context);

}  // namespace snug::backends::cuda
