// shard: from a program of one rank to one that every rank of a mesh runs. What is sharded
// (sharding.h) is gathered before the operations that need all of it, gradients are summed over
// ranks, and optimizers step the rank's part.
//
//   before   %y = matmul(%x, %w) layer 0
//            ...
//            %gradient.w = matmul(%d.y, %x) backward layer 0
//   after    %w.gathered = all_gather(%w) channel interconnect        %w: this rank's part
//            %v.gathered = all_gather(%v)                             of layer 1, if prefetched
//            await(%w) updates (%w.gathered)
//            %y = matmul(%x, %w.gathered)
//            ...
//            %gradient.w.whole = matmul(%d.y, %x)
//            %gradient.w = reduce_scatter(%gradient.w.whole)          next to what follows
//            await(%gradient.w.whole) updates (%gradient.w)
//
// A layer's tensors are one collective. A layer's sums are awaited before those of the next begin,
// so unsummed gradients of two layers are in memory at most. All ranks run the same program.
#pragma once

#include <span>

#include "passes/sharding/sharding.h"
#include "program/ir/program.h"

namespace snug::passes {

// What else the ranks do in a program, besides what follows from sharding.
struct ShardRole {
  // A micro-batch after which the gradients of the step are those of all ranks.
  bool is_last_micro = false;
  // Tensors to which every rank adds its share: a loss.
  std::span<const program::Tensor> sums = {};
};

// Requires a lowered program.
program::Program shard(const program::Program& program, const Sharding& sharding,
                       const ShardingOptions& options, const ShardRole& role,
                       const program::Target& target);

}  // namespace snug::passes
