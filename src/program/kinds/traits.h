// What passes, plans, backends and the executor ask of a kind instead of testing for it by name. A
// kind's struct states it in kTraits; one without kTraits has the defaults. What follows from the
// functions that a kind defines is no trait: has_derivative(), has_expansion() (kind.h).
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/operands.h"

namespace snug::program {

// What others treat in a way of its own.
enum class Category : uint8_t {
  other,
  // A matrix product, which lists show with its shape.
  product,
  // Steps a weight by its gradient: has the operands kWeightOperand, kGradientOperand and
  // kFactorOperand.
  optimizer,
  // A part of an optimizer's expansion that works on each element alone: on a rank's part of a
  // tensor that is sharded, and on the host where state is stepped there.
  optimizer_part,
  // Done by several ranks together. States the launches of own kernels, which round and add parts;
  // what the library of messages starts nobody knows. The clock prices messages and launches; no
  // graph keeps it.
  collective,
};

enum class Performer : uint8_t {
  backend,
  // No backend runs it: every target has its expansion.
  expansion,
  // Reads, makes or writes a tensor before the first step or between steps. The runtime performs it
  // (runtime/storage/perform.h), with what a backend offers for it (copy, fill, quantise); no
  // backend runs it.
  runtime,
};

enum class Copying : uint8_t {
  none,
  // Copies what the host has written, or what it will read: never part of a recording, so that the
  // host knows when its memory is free or filled.
  with_host,
  // Begins a copy, between two spaces or between ranks, that goes on during what follows; ends one.
  begins,
  ends,
};

// What the backward pass does with the outputs (passes/gradient/recompute.h).
enum class Recomputing : uint8_t {
  // Keeps them or makes them again, as the mode of the layer says.
  by_mode,
  // Makes them again and never keeps them: they cost one pass over the operands.
  cheap,
  // Likewise. The activation of a layer's mlp, with a gate or without: recompute=gate_up makes what
  // it reads again.
  mlp_activation,
  // As the mode says. Attention over rows, which is costly to make again where rows are long.
  attention,
  // Keeps them, whatever a layer computes again: they are small next to what they cost.
  kept,
};

// An operand whose values say how much of the work is done; the capacity is in its shape.
struct ExtentOperand {
  OperandName name;
  // Where the values are pairs [begin, end): the operand whose rows they count.
  OperandName rows_of = {};
};

struct Traits {
  Category category = Category::other;
  Performer performer = Performer::backend;
  Copying copying = Copying::none;
  Recomputing recomputing = Recomputing::by_mode;
  // Replaced by its derivative, which computes the forward outputs too.
  bool has_training_form = false;
  // A part of a layer that a target may do in one go with its neighbours (Operation::joined).
  bool is_joinable = false;
  // Reads its tensors once, from front to back, and gains nothing from a copy of them that is
  // nearer: they may lie in host memory.
  bool reads_in_place = false;
  // The operand that it passes on with another scale or direction (norms, rotations): where that is
  // made again, so is the output.
  OperandName passes_on = {};
  // The operand that holds a norm which follows from norms of parts: where ranks hold parts of what
  // it reads, their norms are joined into it.
  OperandName norm_of_parts = {};
  // An operand to which every rank adds its share: it is summed over all ranks before anything
  // reads it.
  OperandName sums_over_ranks = {};
  // Of a loss: the operands of one number that it, what is measured with it and its gradients are
  // linear in, all taken together. Loss scaling multiplies them.
  std::array<OperandName, 3> loss_factors = {};
  // The host holds a copy of each (batch_bounds.h), which the kind's function for its work turns
  // into an amount (work_list.h).
  std::array<ExtentOperand, 2> extents = {};

  // A loss: its own gradient is one, and the backward pass begins with it.
  constexpr bool is_loss() const { return !loss_factors[0].empty(); }
  constexpr bool has_extent() const { return !extents[0].name.empty(); }
  constexpr bool is_cheap() const {
    return recomputing == Recomputing::cheap || recomputing == Recomputing::mlp_activation;
  }
  // A whole optimizer or a part of one.
  constexpr bool is_of_optimizer() const {
    return category == Category::optimizer || category == Category::optimizer_part;
  }
};

template <typename Struct>
constexpr Traits traits_of() {
  if constexpr (requires { Struct::kTraits; })
    return Struct::kTraits;
  else
    return {};
}

}  // namespace snug::program
