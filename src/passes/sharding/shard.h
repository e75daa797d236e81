// shard: turns a program for one rank into a program that every rank of a mesh runs. Sharded
// tensors (sharding.h) are gathered before the operations that need them whole, gradients are
// summed over ranks, and optimizers step the rank's part.
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
// One collective handles all tensors of a layer. A layer's sums are awaited before those of the
// next layer begin, so that at most two layers' unsummed gradients are in memory. All ranks run the
// same program.
#pragma once

#include <cstdint>
#include <span>

#include "passes/sharding/sharding.h"
#include "program/ir/program.h"

namespace snug::passes {

// Where the weights that a program reads whole are gathered.
enum class Gathers : uint8_t {
  within,  // where they are read
  before,  // by another program; they are whole already (kept_gathers.h)
  alone,   // by this program, which does nothing else
};

// What the ranks do in a program in addition to what follows from the sharding.
struct ShardRole {
  // After this micro-batch the gradients of the step are summed over all ranks.
  bool is_last_micro = false;
  // Tensors to which every rank contributes a share that is to be summed, such as a loss.
  std::span<const program::Tensor> sums = {};
  Gathers gathers = Gathers::within;  // heeded by the pipeline
};

// Requires a lowered program.
program::Program shard(const program::Program& program, const Sharding& sharding,
                       const ShardingOptions& options, const ShardRole& role,
                       const program::Target& target);

}  // namespace snug::passes
