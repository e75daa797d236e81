// The verifier: what must hold of every program, checked on demand and after each pass in tests.
// Both functions return one sentence a problem, none when all is well, and never throw: they are
// meant for programs that may be broken. Pure functions without shared state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "program/ir/program.h"

namespace snug::program {

// Names are unique; ids exist; views lie inside their bases; each operation obeys its kind's shape
// rule, reaches the spaces of its tensors and writes nothing that it also touches otherwise, except
// in place where its kind allows that; what lives inside the program is written, whole, before it
// is read; what is constant is changed by none, and its program begins with a copy of what the host
// gives, which waits for what ran before; what is being copied to another space is left alone until
// that is awaited. Workspaces are exempt from the last but two, and serve nothing else.
std::vector<std::string> verify(const Program& program);

// Whether a layout keeps apart what is alive at the same time. `offset_of_owner` holds, for each
// tensor that owns bytes, its byte offset in its space, -1 where it was not placed; entries of
// views are not looked at. Alive are tensors of lifetime run and step always, and so are those that
// no operation touches; others of lifetime program are from the first operation that touches them
// to the last, in list order. Two that meet in one
// operation may share bytes only as a pair in which the kind works in place. Checks every operation
// by brute force and shares no code with the layout pass.
std::vector<std::string> verify_offsets(const Program& program,
                                        std::span<const int64_t> offset_of_owner);

}  // namespace snug::program
