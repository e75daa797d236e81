// What every kind defines. A kind's file, in the folder of its area, defines functions by the names
// below, in an anonymous namespace, and states at its end which ones; program/kinds/kind.cpp and
// program/work/rate_key.cpp call them. Internal to program/.
//
//   SNUG_DEFINE_KIND(SiluMul, .differentiate = differentiate);
//
// Every kind has a shape rule and a cost, which the macro puts in. What a kind leaves out is null.
#pragma once

#include <string>

#include "program/kinds/kind.h"
#include "program/work/rate_key.h"
#include "program/work/work_list.h"

namespace snug::program {

template <typename Struct>
struct KindFunctions {
  std::string (*shape_error)(const Struct&, const OperationView&);
  Cost (*cost)(const Struct&, const OperationView&, const Extent&);
  // Asks the tape for the gradient of the operation's output, does nothing when none flows, and
  // writes a contribution for every input that wants one. A kind with a training form emits that:
  // the operation's outputs are written by it. Null: no derivative; a call is a bug.
  void (*differentiate)(const Struct&, const Operation&, Tape&) = nullptr;
  // Null: the kind is basic.
  void (*expand)(const Struct&, const OperationView&, Builder&) = nullptr;
  // Null: a batch decides nothing of it, and one algorithm does it in one piece.
  WorkList (*work)(const Struct&, const OperationView&, const BatchBounds&) = nullptr;
  // Null: the bytes that it moves are its shape.
  RateKey (*rate_key)(const Struct&, const OperationView&, const Extent&) = nullptr;
};

// The functions of a kind, stated in its file.
template <typename Struct>
struct FunctionsOf {
  static const KindFunctions<Struct> kDefined;
};

#define SNUG_KIND(Struct, name) \
  template <>                   \
  const KindFunctions<Struct> FunctionsOf<Struct>::kDefined;
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

#define SNUG_DEFINE_KIND(Struct, ...)                                   \
  template <>                                                           \
  const KindFunctions<Struct> FunctionsOf<Struct>::kDefined {           \
    .shape_error = shape_error, .cost = cost __VA_OPT__(, ) __VA_ARGS__ \
  }

}  // namespace snug::program
