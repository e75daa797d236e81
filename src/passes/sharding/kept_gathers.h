// Weights of which each rank has a part, gathered once for all programs of a stage: a program of
// their own gathers them into tensors that outlast it, and the others read those. It takes as much
// memory as the whole weights, and saves a gather of each weight in each run.
//
//   before   %w.whole.7 = all_gather(%w)                  in each program
//            await(%w) updates (%w.whole.7)
//            %y = matmul(%x, %w.whole.7)
//   after    %w.gathered = all_gather(%w)                 program gather, of lifetime step
//            await(%w) updates (%w.gathered)
//            %y = matmul(%x, %w.gathered)                 in each program
#pragma once

#include "program/ir/program.h"

namespace snug::passes {

// Both require a program without a backward pass, after `shard`.

// The gathers of its weights alone, each weight once, as the program `gather`.
program::Program kept_gathers(program::Program program);

// The program without them.
program::Program without_gathers(program::Program program);

}  // namespace snug::passes
