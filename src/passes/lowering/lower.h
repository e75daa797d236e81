// lower: turns a program that says what is computed into one that says how the target computes it.
//
// Stages, each a rewrite of its own:
//   expand       fused kinds that the target does not run become basic kinds
//   fuse_adds    %t = matmul(%a, %b); %c = add(%t, %x)   ->  %c = matmul(%a, %b, %x) {addend}
//                where the target runs that; a product with a stored weight likewise
//   fuse_low_rank
//                %t = matmul(%x, %w); %c = matmul(%h, %b, %t) {addend}
//                                                     ->  %c = matmul(%x, %w, %h, %b) {augmented}
//   fuse_adds    once more: an augmented product takes the residual
//   fuse_accumulates
//                %p = matmul(%a, %b); accumulate(%p -> %g)  ->  matmul(%a, %b -> %g) {accumulate}
//   in_place     %y = rope(%x, %table), x dead after     ->  %y a view of %x
//   remove_unused
//                tensors that no operation touches any more go
//   decide       what the target decides (Target::decide), how many launches that takes, a tensor
//                of scratch for each operation that asks for it, and which operations one launch
//                does (joined)
//
// Throws UserError when the target cannot run an operation with its element types.
#pragma once

#include "program/ir/program.h"

namespace snug::passes {

program::Program lower(program::Program program, const program::Target& target);

// Only the passes fuse_adds, fuse_low_rank and fuse_adds, for a program that other passes rewrite
// before the rest of `lower`.
program::Program join_products(program::Program program, const program::Target& target);

// The individual rewrites, for tests.
program::Program expand_unsupported(program::Program program, const program::Target& target);
program::Program fuse_adds(program::Program program, const program::Target& target);
program::Program fuse_low_rank(program::Program program, const program::Target& target);
program::Program fuse_accumulates(program::Program program);
program::Program share_in_place(program::Program program);
program::Program remove_unused(program::Program program);
program::Program decide(program::Program program, const program::Target& target);

}  // namespace snug::passes
