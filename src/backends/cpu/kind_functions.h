// One overload a kind, defined in the kind's file of this folder. CpuBackend dispatches to them.
//
// run: called by one thread; may use all. Allocates nothing: scratch is invocation.workspace, whose
// size is what workspace_bytes said for the same shapes, at 64-byte alignment.
// workspace_bytes, supports and prepare have defaults; a kind with something to say declares an
// overload here.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/backend.h"
#include "backends/cpu/context.h"
#include "program/program.h"

namespace snug::backends::cpu {

#define SNUG_KIND(Struct, name) \
  void run(const program::Struct& attributes, const Invocation& invocation, CpuContext& context);
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

// The attributes with this backend's decisions; as they are by default.
template <typename Attributes>
Attributes decide(const Attributes& attributes, const program::OperationView&, const CpuContext&) {
  return attributes;
}
program::LinearCrossEntropy decide(const program::LinearCrossEntropy&,
                                   const program::OperationView&, const CpuContext&);
program::LinearCrossEntropyTrain decide(const program::LinearCrossEntropyTrain&,
                                        const program::OperationView&, const CpuContext&);

// Scratch of an operation, exact.
template <typename Attributes>
int64_t workspace_bytes(const Attributes&, const program::OperationView&, const CpuContext&) {
  return 0;
}
int64_t workspace_bytes(const program::Attention&, const program::OperationView&,
                        const CpuContext&);
int64_t workspace_bytes(const program::AttentionGrad&, const program::OperationView&,
                        const CpuContext&);
int64_t workspace_bytes(const program::EmbeddingGrad&, const program::OperationView&,
                        const CpuContext&);
int64_t workspace_bytes(const program::GlobalNorm&, const program::OperationView&,
                        const CpuContext&);
int64_t workspace_bytes(const program::Matmul&, const program::OperationView&, const CpuContext&);
int64_t workspace_bytes(const program::MatmulNf4&, const program::OperationView&,
                        const CpuContext&);
int64_t workspace_bytes(const program::RmsNormGrad&, const program::OperationView&,
                        const CpuContext&);
int64_t workspace_bytes(const program::SumRows&, const program::OperationView&, const CpuContext&);
int64_t workspace_bytes(const program::LinearCrossEntropy&, const program::OperationView&,
                        const CpuContext&);
int64_t workspace_bytes(const program::LinearCrossEntropyTrain&, const program::OperationView&,
                        const CpuContext&);

// Whether the element types of an operation can run here; by default f32 and bf16 in any mix.
template <typename Attributes>
bool supports(const Attributes&, const program::OperationView&, const CpuContext&) {
  return true;
}
bool supports(const program::AdamW&, const program::OperationView&, const CpuContext&);
bool supports(const program::AdamW8bit&, const program::OperationView&, const CpuContext&);
bool supports(const program::Attention&, const program::OperationView&, const CpuContext&);
bool supports(const program::AttentionGrad&, const program::OperationView&, const CpuContext&);
bool supports(const program::RmsNorm&, const program::OperationView&, const CpuContext&);
bool supports(const program::RmsNormGrad&, const program::OperationView&, const CpuContext&);
bool supports(const program::RotaryTable&, const program::OperationView&, const CpuContext&);
bool supports(const program::Rope&, const program::OperationView&, const CpuContext&);
bool supports(const program::SiluMul&, const program::OperationView&, const CpuContext&);
bool supports(const program::SiluMulGrad&, const program::OperationView&, const CpuContext&);
bool supports(const program::MatmulNf4&, const program::OperationView&, const CpuContext&);
bool supports(const program::Matmul&, const program::OperationView&, const CpuContext&);
bool supports(const program::LinearCrossEntropy&, const program::OperationView&, const CpuContext&);
bool supports(const program::LinearCrossEntropyTrain&, const program::OperationView&,
              const CpuContext&);

// What is kept of an operation between runs, or null.
template <typename Attributes>
std::unique_ptr<Prepared> prepare(const Attributes&, const program::OperationView&, CpuContext&) {
  return nullptr;
}
std::unique_ptr<Prepared> prepare(const program::Matmul&, const program::OperationView&,
                                  CpuContext&);
std::unique_ptr<Prepared> prepare(const program::LinearCrossEntropy&, const program::OperationView&,
                                  CpuContext&);
std::unique_ptr<Prepared> prepare(const program::LinearCrossEntropyTrain&,
                                  const program::OperationView&, CpuContext&);

}  // namespace snug::backends::cpu
