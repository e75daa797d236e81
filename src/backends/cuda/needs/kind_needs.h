// What each kind needs of a card: whether it runs there, and its scratch. No CUDA header and no
// driver: the backend asks this of the card that is open, a plan of one that is not here.
//
// A kind's file in this folder defines functions by the names of KindNeeds, in an anonymous
// namespace, and states at its end which ones. What a kind leaves out is null.
//
//   SNUG_CARD_NEEDS(RmsNorm);
//   SNUG_CARD_NEEDS(RmsNormGrad, .supports = supports, .workspace_bytes = workspace_bytes);
#pragma once

#include <cstdint>

#include "backends/cuda/needs/card.h"
#include "program/ir/program.h"
#include "program/work/target.h"

namespace snug::backends::cuda {

// Whether the operation runs on the card.
bool runs(const program::OperationView& view, const Card& card);
// Its attributes with what is decided for the card.
program::Attributes decide(const program::OperationView& view, const Card& card);
// How many operations, from this one of the list on, one launch does.
size_t launched_together(const program::Program& program, size_t first);
// Kernels and calls of libraries that are started for it as decided, those of chunks apart; the
// most of what may be chosen where a product is timed.
int32_t launches(const program::OperationView& view, const Card& card);
// Its scratch, exact, unless a library asks for less.
int64_t workspace_bytes(const program::OperationView& view, const Card& card);
// Its scratch, as a target says it.
program::Workspace workspace(const program::OperationView& view, const Card& card);

using program::OperationView;

template <typename Struct>
struct KindNeeds {
  // Whether the card runs the operation. Null: it does, f32 with one of bf16 and
  // f16 in any mix.
  bool (*supports)(const Struct&, const OperationView&, const Card&) = nullptr;
  // The attributes with what is decided for the card. Null: as they are.
  Struct (*decide)(const Struct&, const OperationView&, const Card&) = nullptr;
  // Null: no scratch.
  int64_t (*workspace_bytes)(const Struct&, const OperationView&, const Card&) = nullptr;
  // Whether a library does it as decided, whose scratch is bounded by a table or by what it is
  // given and need not use up. Null: own kernels do, which need what they say.
  bool (*by_library)(const Struct&, const OperationView&) = nullptr;
  // How many kernels and calls of libraries are started for it. Null: one, none of what copies.
  int32_t (*launches)(const Struct&, const OperationView&, const Card&) = nullptr;
  // How many operations, from this one of the kind on, one launch does. Null: this one.
  size_t (*launched_together)(const program::Program& program, size_t first) = nullptr;
};

// What a kind needs, stated in its file.
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
