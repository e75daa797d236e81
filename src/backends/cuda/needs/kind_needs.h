// What each kind of operation needs of a GPU: whether it runs there, and its scratch. Includes
// neither CUDA headers nor a driver: the backend asks for the GPU that is open, and a plan for one
// that is not present.
//
// A kind's file in this folder defines some of the functions of KindNeeds in an anonymous
// namespace, and lists at its end which ones. Functions that it does not list are null.
//
//   SNUG_CARD_NEEDS(RmsNorm);
//   SNUG_CARD_NEEDS(RmsNormGrad, .supports = supports, .workspace_bytes = workspace_bytes);
#pragma once

#include <cstdint>

#include "backends/cuda/needs/card.h"
#include "program/ir/program.h"
#include "program/work/target.h"

namespace snug::backends::cuda {

// Whether the operation runs on the GPU.
bool runs(const program::OperationView& view, const Card& card);
// The operation's attributes with the decisions for the GPU.
program::Attributes decide(const program::OperationView& view, const Card& card);
// How many operations of the list, starting with this one, one launch can do.
size_t launched_together(const program::Program& program, size_t first);
// The number of kernel launches and library calls for the operation as decided, without those of
// chunks; for a timed product, the most of any algorithm.
int32_t launches(const program::OperationView& view, const Card& card);
// The size of the operation's scratch, which is exact unless a library needs less.
int64_t workspace_bytes(const program::OperationView& view, const Card& card);
// The operation's scratch in the form that a Target returns.
program::Workspace workspace(const program::OperationView& view, const Card& card);

using program::OperationView;

template <typename Struct>
struct KindNeeds {
  // Whether the GPU runs the operation. Null: yes, with f32 and one of bf16 and f16 in any mix.
  bool (*supports)(const Struct&, const OperationView&, const Card&) = nullptr;
  // The attributes with the decisions for the GPU. Null: unchanged.
  Struct (*decide)(const Struct&, const OperationView&, const Card&) = nullptr;
  // Null: no scratch.
  int64_t (*workspace_bytes)(const Struct&, const OperationView&, const Card&) = nullptr;
  // Whether a library computes the operation as decided. The library's scratch is bounded by a
  // table or by what it is given, and it need not use all of it. Null: Snug's own kernels compute
  // it, and the scratch is exact.
  bool (*by_library)(const Struct&, const OperationView&) = nullptr;
  // The number of kernel launches and library calls. Null: one, or none for copies.
  int32_t (*launches)(const Struct&, const OperationView&, const Card&) = nullptr;
  // How many operations, starting with this one of the kind, one launch can do. Null: one.
  size_t (*launched_together)(const program::Program& program, size_t first) = nullptr;
};

// The needs of a kind, defined in its file.
template <typename Struct>
struct NeedsOf {
  static const KindNeeds<Struct> kDefined;
};

#define SNUG_KIND(Struct, name) \
  template <>                   \
  const KindNeeds<program::Struct> NeedsOf<program::Struct>::kDefined;
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

#define SNUG_CARD_NEEDS(Struct, ...)                                    \
  template <>                                                           \
  const KindNeeds<program::Struct> NeedsOf<program::Struct>::kDefined { \
    __VA_ARGS__                                                         \
  }

}  // namespace snug::backends::cuda
