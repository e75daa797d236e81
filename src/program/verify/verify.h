// The verifier: checks what must hold for every program, on demand and, in tests, after each pass.
// Both functions return one sentence per problem, nothing if there is none, and never throw, since
// they are meant for programs that may be broken. Pure functions without shared state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "program/ir/program.h"

namespace snug::program {

// Checks that names are unique; ids exist; views lie inside their bases; each operation obeys its
// kind's shape rule, can access the memory spaces of its tensors, and does not write a tensor that
// it also touches otherwise, except in place where its kind allows that; tensors of lifetime
// program are written entirely before they are read; constant tensors are not changed, and their
// program begins with a copy of a tensor that the host sets, which waits for what ran before;
// tensors that are being copied to another space are not used until the copy is awaited. Workspaces
// need not be written before use, and have no other use.
std::vector<std::string> verify(const Program& program);

// Checks that a layout separates tensors which are alive at the same time. `offset_of_owner` holds
// the byte offset of each tensor that owns bytes in its space, or -1 if it was not placed; entries
// of views are ignored. Tensors of lifetime run and step, and tensors that no operation touches,
// are always alive; other tensors of lifetime program are alive from the first operation that
// touches them to the last, in list order. Two tensors that are used by the same operation may
// share bytes only as a pair that its kind processes in place. Checks every operation by brute
// force and shares no code with the layout pass.
std::vector<std::string> verify_offsets(const Program& program,
                                        std::span<const int64_t> offset_of_owner);

}  // namespace snug::program
