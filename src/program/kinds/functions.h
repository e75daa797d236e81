// What every kind defines. A kind's file in this folder defines functions by the names below, in an
// anonymous namespace, and states at its end which ones; program/kinds/kind.cpp and
// program/work/rate_key.cpp call them. Internal to program/.
//
//   SNUG_DEFINE_KIND(SiluMul, .differentiate = differentiate, .in_place_pairs = in_place_pairs);
//
// Every kind has a shape rule and a cost, which the macro puts in. What a kind leaves out is null.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/kinds/kind.h"
#include "program/work/extent.h"
#include "program/work/rate_key.h"

namespace snug::program {

using InPlacePairs = std::vector<InPlacePair>;

// What one algorithm does of an operation that several share.
struct Share {
  Extent extent;
  std::string_view suffix = {};                          // that its rate key's name has for it
  std::optional<base::DType> multiplies = std::nullopt;  // nothing: the type of the rate key
};

// A decision that the name of a rate key leaves out, and why operations that differ in it alone
// have the same rates all the same.
struct PricedAlike {
  std::string_view decision;
  std::string_view reason;
};

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
  // Null: no output may share the bytes of an input.
  InPlacePairs (*in_place_pairs)(const Struct&) = nullptr;
  // Null: a batch decides nothing of it (Traits::extents).
  Extent (*extent_of)(const Struct&, const OperationView&, const BatchBounds&) = nullptr;
  // Null: it is done in one piece, or pieces_error() says what its pieces may be.
  std::vector<int64_t> (*pieces_of)(const Struct&, const OperationView&,
                                    const BatchBounds&) = nullptr;
  // Where pieces follow from values that a program makes, which no host knows: what is wrong with
  // those of a trace, as the end of a sentence; empty where nothing is. Null: pieces_of() says
  // them.
  std::string (*pieces_error)(const Struct&, const OperationView&,
                              std::span<const int64_t>) = nullptr;
  // Whether such pieces left a decision, by its name, nothing to do: a trace then need not note it.
  // Null: all decisions have work wherever there is any.
  bool (*had_no_work)(const Struct&, const OperationView&, std::string_view,
                      std::span<const int64_t>) = nullptr;
  // What each algorithm does of it, where its decisions give parts of a batch to different ones; at
  // least one share. Null: one algorithm does all of it.
  std::vector<Share> (*shares_of)(const Struct&, const OperationView&,
                                  const BatchBounds&) = nullptr;
  // Null: the bytes that it moves are its shape.
  RateKey (*rate_key)(const Struct&, const OperationView&, const Extent&) = nullptr;
  // Decisions that the name of that key has. The name is given a word for each of those that are
  // neither here nor in priced_alike (rate_key.cpp), so that none is forgotten.
  std::span<const std::string_view> named = {};
  std::span<const PricedAlike> priced_alike = {};
  // Decisions that a trace need not note, since what they did is in the pieces: thresholds and
  // sizes of chunks.
  std::span<const std::string_view> in_pieces = {};
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

// Picks, from pairs of an output and an input, those that an operation with these attributes has.
template <typename Struct>
InPlacePairs in_place(const Struct& attributes,
                      std::initializer_list<std::pair<Operand<Struct>, Operand<Struct>>> pairs) {
  InPlacePairs result;
  for (const auto& [output, input] : pairs) {
    const Slot to = slot_of(attributes, output);
    const Slot from = slot_of(attributes, input);
    if (to.present && from.present && to.access == Access::write)
      result.push_back({output.name, input.name});
  }
  return result;
}

}  // namespace snug::program
