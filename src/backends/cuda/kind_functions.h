// One overload a kind, defined in the kind's file of this folder. CudaBackend dispatches to them.
//
// run: queues the operation on the context's stream and returns; looks at no value on the device.
// Scratch is invocation.workspace, whose size is what workspace_bytes said for the same shapes.
// workspace_bytes, supports and prepare have defaults; a kind with something to say declares an
// overload here.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/backend.h"
#include "backends/cuda/context.h"
#include "program/program.h"

namespace snug::backends::cuda {

#define SNUG_KIND(Struct, name) \
  void run(const program::Struct& attributes, const Invocation& invocation, CudaContext& context);
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

// Scratch of an operation, exact.
template <typename Attributes>
int64_t workspace_bytes(const Attributes&, const program::OperationView&, const CudaContext&) {
  return 0;
}
int64_t workspace_bytes(const program::Attention&, const program::OperationView&,
                        const CudaContext&);
int64_t workspace_bytes(const program::AttentionGrad&, const program::OperationView&,
                        const CudaContext&);
int64_t workspace_bytes(const program::GlobalNorm&, const program::OperationView&,
                        const CudaContext&);
int64_t workspace_bytes(const program::LinearCrossEntropy&, const program::OperationView&,
                        const CudaContext&);
int64_t workspace_bytes(const program::LinearCrossEntropyTrain&, const program::OperationView&,
                        const CudaContext&);
int64_t workspace_bytes(const program::Matmul&, const program::OperationView&, const CudaContext&);
int64_t workspace_bytes(const program::RmsNormGrad&, const program::OperationView&,
                        const CudaContext&);
int64_t workspace_bytes(const program::SumRows&, const program::OperationView&, const CudaContext&);

// Whether an operation can run here; by default f32 and bf16 in any mix.
template <typename Attributes>
bool supports(const Attributes&, const program::OperationView&, const CudaContext&) {
  return true;
}
bool supports(const program::AdamW&, const program::OperationView&, const CudaContext&);
bool supports(const program::AdamW8bit&, const program::OperationView&, const CudaContext&);
bool supports(const program::Attention&, const program::OperationView&, const CudaContext&);
bool supports(const program::AttentionGrad&, const program::OperationView&, const CudaContext&);
bool supports(const program::LinearCrossEntropy&, const program::OperationView&,
              const CudaContext&);
bool supports(const program::LinearCrossEntropyTrain&, const program::OperationView&,
              const CudaContext&);
bool supports(const program::Matmul&, const program::OperationView&, const CudaContext&);
bool supports(const program::MatmulNf4&, const program::OperationView&, const CudaContext&);

// What is kept of an operation between runs, or null.
template <typename Attributes>
std::unique_ptr<Prepared> prepare(const Attributes&, const program::OperationView&, CudaContext&) {
  return nullptr;
}
std::unique_ptr<Prepared> prepare(const program::LinearCrossEntropy&, const program::OperationView&,
                                  CudaContext&);
std::unique_ptr<Prepared> prepare(const program::LinearCrossEntropyTrain&,
                                  const program::OperationView&, CudaContext&);
std::unique_ptr<Prepared> prepare(const program::Matmul&, const program::OperationView&,
                                  CudaContext&);

}  // namespace snug::backends::cuda
