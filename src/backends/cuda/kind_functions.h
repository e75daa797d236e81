// One overload a kind, defined in the kind's file of this folder. CudaBackend dispatches to them.
//
// run: queues the operation on the context's stream and returns; looks at no value on the device.
// Scratch is invocation.workspace, whose size is what needs/kind_needs.h says of the same shapes.
// run_first, prepare and tune have defaults; a kind with something to say declares an overload
// here.
#pragma once

#include <memory>
#include <span>

#include "backends/backend.h"
#include "backends/cuda/context.h"
#include "program/program.h"

namespace snug::backends::cuda {

#define SNUG_KIND(Struct, name) \
  void run(const program::Struct& attributes, const Invocation& invocation, CudaContext& context);
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

// Runs the first operation of the list, which has these attributes, and those behind it that may be
// run with it; returns how many.
template <typename Attributes>
size_t run_first(const Attributes& attributes, std::span<const Invocation> list,
                 CudaContext& context) {
  run(attributes, list[0], context);
  return 1;
}
size_t run_first(const program::AdamW&, std::span<const Invocation>, CudaContext&);
size_t run_first(const program::AdamW8bit&, std::span<const Invocation>, CudaContext&);

// What is kept of an operation between runs, or null.
template <typename Attributes>
std::unique_ptr<Prepared> prepare(const Attributes&, const program::OperationView&, CudaContext&) {
  return nullptr;
}
std::unique_ptr<Prepared> prepare(const program::Attention&, const program::OperationView&,
                                  CudaContext&);
std::unique_ptr<Prepared> prepare(const program::AttentionGrad&, const program::OperationView&,
                                  CudaContext&);
std::unique_ptr<Prepared> prepare(const program::LinearCrossEntropy&, const program::OperationView&,
                                  CudaContext&);
std::unique_ptr<Prepared> prepare(const program::LinearCrossEntropyTrain&,
                                  const program::OperationView&, CudaContext&);
std::unique_ptr<Prepared> prepare(const program::Matmul&, const program::OperationView&,
                                  CudaContext&);

// Chooses between ways to do it by timing them on its tensors, before anything is loaded
// (Backend::tune).
template <typename Attributes>
void tune(const Attributes&, const Invocation&, CudaContext&) {}
void tune(const program::LinearCrossEntropy&, const Invocation&, CudaContext&);
void tune(const program::LinearCrossEntropyTrain&, const Invocation&, CudaContext&);
void tune(const program::Matmul&, const Invocation&, CudaContext&);

}  // namespace snug::backends::cuda
