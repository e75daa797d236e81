// Attention through cuDNN: translates an operation to the library's plan and the tables that it
// reads, and does what the library leaves undone. backends/cuda/attention/cudnn_needs.h says
// for which operations.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/device/context.h"
#include "backends/invocation.h"

namespace snug::backends::cuda {

// Why the library does not get what the operation assigns to it: it has no kernel for it within the
// planned scratch, or its results are not those of own kernels (library_check.h). Empty where it
// gets it, and for an operation that assigns nothing to it.
std::string why_cudnn_is_left(const program::OperationView& view, CudaContext& context);

// The requests to the library, one for each bucket, with the strides of what it reads and writes.
std::vector<SegmentAttention> segments_of(const program::Attention& attention,
                                          const program::OperationView& view);
std::vector<SegmentAttention> segments_of(const program::AttentionGrad& grad,
                                          const program::OperationView& view);

// Prepares an operation that is assigned to the library. Throws UserError where the library refuses
// it.
std::unique_ptr<Prepared> prepare_cudnn(const program::Attention& attention,
                                        const program::OperationView& view, CudaContext& context);
std::unique_ptr<Prepared> prepare_cudnn(const program::AttentionGrad& grad,
                                        const program::OperationView& view, CudaContext& context);

// Makes the library load its kernels: runs the operation once on full segments, unless one of the
// same shape ran before. Afterwards everything that it writes, and its bounds, are zero. Throws
// UserError where the library refuses.
void load_cudnn(const program::Attention& attention, const Invocation& invocation,
                CudaContext& context);
void load_cudnn(const program::AttentionGrad& grad, const Invocation& invocation,
                CudaContext& context);

// Runs an invocation that was prepared by prepare_cudnn. While kernels are loaded
// (kernel_loading.h) the library is not called.
void run_cudnn(const program::Attention& attention, const Invocation& invocation,
               CudaContext& context);
void run_cudnn(const program::AttentionGrad& grad, const Invocation& invocation,
               CudaContext& context);

}  // namespace snug::backends::cuda
