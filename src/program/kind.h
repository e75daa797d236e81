// What each kind knows of itself: its shape rule, its cost, its derivative, where it may work in
// place. Defined in kinds/<file>.cpp (kinds/functions.h); the functions here dispatch over the
// attributes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program/kinds/traits.h"
#include "program/program.h"

namespace snug::program {

class Builder;
class Tape;

// Which bounds a time prediction assumes; shapes are capacities, work depends on these.
struct Load {
  double segment_tokens =
      0;  // mean length of an attention segment; 0: a whole row of the micro-batch
  double trained_fraction = 1.0;  // rows that carry loss
  int64_t row_tokens = 0;         // tokens of a row (max_length)
};

// Work of one operation: floating-point operations and bytes moved, each tensor counted once.
struct Cost {
  double flops = 0;
  double bytes = 0;
  // Of the bytes, those that move while nothing is computed: what the first of two products leaves
  // for the second.
  double serial_bytes = 0;
  double launches = 1;  // 0 of what is joined
};

// Whether the tensors obey the kind's shape rule, and operand_error: empty if so, else what is
// wrong.
std::string shape_error(const OperationView& view);

Cost cost(const OperationView& view, const Load& load);

// Emits the backward operations of `operation` through the tape (see tape.h). Only for basic kinds
// and kinds with a training form.
void differentiate(const Operation& operation, Tape& tape);
bool has_derivative(Kind kind);

// Emits the basic kinds that define a fused kind. A basic kind is emitted as it is. The builder's
// table must hold the operation's tensors under the same ids; its layer and phase become the
// operation's.
void expand(const OperationView& view, Builder& builder);

// Pairs (index into writes, index into reads) that may share bytes when the read dies here and both
// have the same shape and element type, which the caller checks.
std::vector<std::pair<int, int>> in_place_pairs(const Operation& operation);

// What is asked of a kind instead of testing for it by name.
const Traits& traits_of(Kind kind);
inline const Traits& traits_of(const Operation& operation) { return traits_of(operation.kind()); }

}  // namespace snug::program
