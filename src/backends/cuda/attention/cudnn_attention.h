// Attention through cuDNN: from an operation to the library's plan, the tables it reads and what it
// leaves undone. backends/cuda/attention/attention_needs.h says which operations.
#pragma once

#include <memory>

#include "backends/cuda/device/context.h"
#include "backends/invocation.h"

namespace snug::backends::cuda {

// Whether the library takes what the operation gives to it, within the scratch that is planned for
// that; where it refuses, the reason is said. True for an operation that gives it nothing.
bool cudnn_accepts(const program::OperationView& view, CudaContext& context);

// What the library is asked for, with the strides of what it reads and writes.
SegmentAttention segments_of(const program::Attention& attention,
                             const program::OperationView& view);
SegmentAttention segments_of(const program::AttentionGrad& grad,
                             const program::OperationView& view);

// Prepares an operation that was given to the library. Throws UserError where it refuses.
std::unique_ptr<Prepared> prepare_cudnn(const program::Attention& attention,
                                        const program::OperationView& view, CudaContext& context);
std::unique_ptr<Prepared> prepare_cudnn(const program::AttentionGrad& grad,
                                        const program::OperationView& view, CudaContext& context);

// Runs it once on full segments, unless one of the same shape ran before, so that the library has
// loaded its kernels. What it writes is zero afterwards, its bounds too. Throws UserError where the
// library refuses.
void load_cudnn(const program::Attention& attention, const Invocation& invocation,
                CudaContext& context);
void load_cudnn(const program::AttentionGrad& grad, const Invocation& invocation,
                CudaContext& context);

// Runs an invocation that has been prepared so. While kernels are loaded (kernel_loading.h) the
// library is not called.
void run_cudnn(const program::Attention& attention, const Invocation& invocation,
               CudaContext& context);
void run_cudnn(const program::AttentionGrad& grad, const Invocation& invocation,
               CudaContext& context);

}  // namespace snug::backends::cuda
