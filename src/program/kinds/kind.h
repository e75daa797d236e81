// What a kind knows of itself: its shape rule, its cost, its derivative, its expansion, where it
// may work in place, its traits. The kinds' own files (kinds/<area>/<file>.cpp) define it by the
// functions of kinds/functions.h; those here find the kind by the operation's attributes. What a
// batch asks of a kind is in program/work/.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"
#include "program/kinds/traits.h"
#include "program/work/batch_bounds.h"
#include "program/work/extent.h"

namespace snug::program {

class Builder;
class Tape;

// Work of one operation: floating-point operations and bytes moved, where what is updated in place
// counts as read and written. Shapes are capacities; what the batch asks for counts (extent.h).
struct Cost {
  double flops = 0;
  double bytes = 0;
  // The part of `bytes` that is moved while nothing is computed: what the first of two products
  // leaves for the second.
  double serial_bytes = 0;
  // The part of `bytes` that the device reads from host memory, over the link.
  double link_bytes = 0;
  // Launches in all (0 for an operation that is joined), and the part of them that chunks take.
  double launches = 1;
  double chunk_launches = 0;
};

// Whether the tensors obey the kind's shape rule, and operand_error: empty if so, else what is
// wrong.
std::string shape_error(const OperationView& view);

Cost cost(const OperationView& view, const BatchBounds& bounds);
Cost cost_of(const OperationView& view, const Extent& extent);

// Emits the backward operations of `operation` through the tape (see tape.h). Only for basic kinds
// and kinds with a training form.
void differentiate(const Operation& operation, Tape& tape);
bool has_derivative(Kind kind);

// Whether other kinds define it: it is fused, and not basic.
bool has_expansion(Kind kind);
// Emits the basic kinds that define a fused kind. A basic kind is emitted as it is. The builder's
// table must hold the operation's tensors under the same ids; its layer and phase become the
// operation's.
void expand(const OperationView& view, Builder& builder);

// An output that may share the bytes of an input.
struct InPlacePair {
  OperandName output;
  OperandName input;
  bool operator==(const InPlacePair&) const = default;
};
// The pairs that the operation has (find_operand). They may share bytes when the input dies here
// and both have the same shape and element type, which the caller checks.
std::vector<InPlacePair> in_place_pairs(const Operation& operation);

// What is asked of a kind instead of testing for it by name.
const Traits& traits_of(Kind kind);
inline const Traits& traits_of(const Operation& operation) { return traits_of(operation.kind()); }
// Whether its copy has ended for all: an await on the channel `host` holds up that channel alone.
inline bool ends_copy(const Operation& operation) {
  return traits_of(operation).copying == Copying::ends && operation.channel != Channel::host;
}

}  // namespace snug::program
