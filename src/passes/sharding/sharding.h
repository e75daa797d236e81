// Which tensors are sharded over ranks, and how: tensors are treated as flat, and rank r of a
// replica holds elements [r n, (r + 1) n). They are padded so that no quantisation block is split
// between two ranks.
//
// n is a multiple of 256 elements, or of 16,384 where the scales of NF4 blocks are quantised to 8
// bits too. So quantised values, stochastic rounding and 8-bit state are the same for any number of
// ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/recipe/choices.h"
#include "program/ir/program.h"
#include "program/kinds/optimizer/optimizer_state.h"
#include "program/kinds/transfer/rank_group.h"

namespace snug::passes {

// Which part of the weights a rank holds between programs, and when it holds more of them.
enum class WeightSharding : uint8_t {
  whole,  // the whole weights (ddp, zero1, zero2)
  // Its part; within a program the whole weights, from their first use to their last.
  program_by_program,
  // Its part; a layer's whole weights while that layer runs.
  layer_by_layer,
};

// How gradients are summed over ranks.
enum class GradientSharding : uint8_t {
  // Whole on every rank, and summed in the last micro-batch (ddp).
  summed,
  // Whole on every rank until the last micro-batch, which leaves the rank's part of the sum
  // (zero1).
  scattered_last,
  // The rank's part of the sum, accumulated over micro-batches.
  scattered,
};

// When the gather of a layer's weights begins; with `pre`, the weights of two layers are in memory
// at a time.
using formats::Prefetch;

struct ShardingOptions {
  int32_t shards = 1;      // ranks that share the tensors of a replica
  int32_t replicas = 1;    // number of groups of `shards` ranks
  int32_t node_ranks = 1;  // ranks per machine
  WeightSharding weights = WeightSharding::whole;
  GradientSharding gradients = GradientSharding::summed;
  Prefetch prefetch = Prefetch::pre;
  bool sent_bf16 = false;                // gradients are rounded to bf16 before they are sent
  int64_t threshold_elements = 100'000;  // smaller weights stay whole on every rank

  int32_t ranks() const { return shards * replicas; }
  int32_t ranks_of(program::RankGroup group) const;
  int32_t nodes_of(program::RankGroup group) const;
  bool shards_state() const { return shards > 1 && gradients != GradientSharding::summed; }
  bool shards_weights() const { return shards > 1 && weights != WeightSharding::whole; }
};

// A tensor that is sharded, or that is padded so that it can be divided.
struct ShardedTensor {
  int64_t elements = 0;    // per rank
  bool is_padded = false;  // every rank holds the parts of all ranks
};

// Whether ranks hold only parts of the optimizer's state for a trainable tensor: it must be large
// enough, and no operation may write it whole.
bool divides_state(const program::Tensor& trainable, const ShardingOptions& options);

// Looks up the sharding of tensors that outlast a program by name.
class Sharding {
 public:
  Sharding() = default;
  // `micro`: a program with all weights as they are stored. `states`: the optimizer's state for
  // each trainable tensor; where state is sharded, none of it may concern a tensor as a whole.
  Sharding(const program::Program& micro, std::span<const program::Tensor> trainables,
           std::span<const std::vector<program::OptimizerState>> states,
           const ShardingOptions& options);

  // Nothing: every rank holds the tensor whole.
  std::optional<ShardedTensor> find(std::string_view tensor) const;
  // Whether it is the gradient of a trainable tensor.
  bool is_gradient(std::string_view tensor) const { return gradients_.contains(tensor); }
  // Whether it is the norm of a gradient of which each rank has only a part.
  bool is_part_norm(std::string_view tensor) const { return part_norms_.contains(tensor); }

 private:
  void add_weight(const program::Program& micro, const program::Tensor& weight,
                  const ShardingOptions& options);
  void add_state(const program::Tensor& trainable,
                 const std::vector<program::OptimizerState>& states,
                 const ShardingOptions& options);
  std::unordered_map<std::string, ShardedTensor> parts_;
  std::set<std::string, std::less<>> gradients_;
  std::set<std::string, std::less<>> part_norms_;
};

}  // namespace snug::passes
