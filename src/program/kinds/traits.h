// What passes, plans and the executor ask of a kind instead of testing for it by name. A kind's
// struct states them in kTraits; one without kTraits has the defaults.
#pragma once

#include <array>

#include "program/kinds/operands.h"

namespace snug::program {

struct Traits {
  // Costs one pass over its operands: its output is made again in the backward pass and never kept
  // for it.
  bool is_cheap = false;
  // The operand that it passes on with another scale or direction (norms, rotations): where that is
  // made again, so is the output.
  OperandName passes_on = {};
  // The activation of a layer's mlp, with a gate or without: recompute=gate_up makes what it reads
  // again.
  bool is_mlp_activation = false;
  // Attention over rows: costly to make again where rows are long.
  bool is_attention = false;
  // The operand that holds a norm which follows from norms of parts: where ranks hold parts of what
  // it reads, their norms are joined into it.
  OperandName norm_of_parts = {};
  // Small next to what it costs: kept for the backward pass, whatever a layer computes again.
  bool is_kept = false;
  // A matrix product, which lists show with its shape.
  bool is_product = false;
  // A loss: its own gradient is one, and the backward pass begins with it.
  bool is_loss = false;
  // Operands of one number that a loss, what is measured with it and its gradients are linear in,
  // all taken together: loss scaling multiplies them.
  std::array<OperandName, 3> loss_factors = {};
  // An operand to which every rank adds its share: it is summed over all ranks before anything
  // reads it.
  OperandName sums_over_ranks = {};
  // Replaced by its derivative, which computes the forward outputs too.
  bool has_training_form = false;
  // Defined by its expansion into other kinds.
  bool is_fused = false;
  // No backend runs it: every target has its expansion.
  bool by_expansion = false;
  // A part of a layer that a target may do in one go with its neighbours (Operation::joined).
  bool is_joinable = false;
  // Steps a weight by its gradient: has the operands kWeightOperand, kGradientOperand and
  // kFactorOperand.
  bool is_optimizer = false;
  // A part of an optimizer's expansion that works on each element alone: on a rank's part of a
  // tensor that is sharded, and on the host where state is stepped there.
  bool is_optimizer_part = false;
  // Reads its tensors once, from front to back, and gains nothing from a copy of them that is
  // nearer: they may lie in host memory.
  bool reads_in_place = false;
  // Copies what the host has written, or what it will read: never part of a recording, so that the
  // host knows when its memory is free or filled.
  bool is_host_copy = false;
  // Reads, makes or writes a tensor before the first step or between steps. The runtime performs it
  // (runtime/storage/perform.h), with what a backend offers for it (copy, fill, quantise); no
  // backend runs it.
  bool by_runtime = false;
  // Begins a copy, between two spaces or between ranks, that goes on during what follows; ends one.
  bool begins_copy = false;
  bool ends_copy = false;
  // Done by several ranks together. States the launches of own kernels, which round and add parts;
  // what the library of messages starts nobody knows. The clock prices messages and launches; no
  // graph keeps it.
  bool is_collective = false;
  // The operands whose values say how much of the work is done; their capacity is in their shapes.
  // The host holds a copy (batch_bounds.h), which the kind's extent_of() turns into an amount
  // (extent.h).
  std::array<OperandName, 2> extents = {};
  // For each extent that holds pairs [begin, end): the operand whose rows they count.
  std::array<OperandName, 2> bounded = {};

  constexpr bool has_extent() const { return !extents[0].empty(); }
};

template <typename Struct>
constexpr Traits traits_of() {
  if constexpr (requires { Struct::kTraits; })
    return Struct::kTraits;
  else
    return {};
}

}  // namespace snug::program
