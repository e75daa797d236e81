// The meaning of every kind: run<T>(attributes, invocation), computing in T = float or double.
// Defined in the file of the kind's group; what a kind means is written in program/kinds/.
#pragma once

#include "backends/backend.h"

namespace snug::backends::reference {

#define SNUG_KIND(Struct, name) \
  template <typename T>         \
  void run(const program::Struct& attributes, const Invocation& invocation);
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

// Scratch a kind needs, in elements of T. Most need none.
template <typename Struct>
int64_t scratch_elements(const Struct&, const program::OperationView&) {
  return 0;
}
int64_t scratch_elements(const program::Attention&, const program::OperationView&);
int64_t scratch_elements(const program::AttentionGrad&, const program::OperationView&);
int64_t scratch_elements(const program::EmbeddingGrad&, const program::OperationView&);
int64_t scratch_elements(const program::LinearCrossEntropy&, const program::OperationView&);
int64_t scratch_elements(const program::LinearCrossEntropyTrain&, const program::OperationView&);
int64_t scratch_elements(const program::RmsNormGrad&, const program::OperationView&);

}  // namespace snug::backends::reference

// At the end of a kind's file: its two instances.
#define SNUG_INSTANTIATE(Struct)                                       \
  template void run<float>(const program::Struct&, const Invocation&); \
  template void run<double>(const program::Struct&, const Invocation&)
