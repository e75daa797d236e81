// What ranks do together: gather what is sharded, and sum. Tensors that are sharded lie flat,
// one part after the other (Tensor::whole). Each operation is of any number of tensors, so that a
// layer is one message and not nine; the n-th of one operand belongs to the n-th of the other.
//
// Like transfers they begin once all operations before them that compute are done, and go on next
// to what follows until an await of them. Those of one program take place in its order, on all
// ranks. Sums are made in f32 in the order of ranks, in pieces that are exchanged and summed one
// after the other (collective_pieces.h). Their scratch is a workspace that their await has too. One
// rank alone copies. `nodes`: machines that the group is spread over, for the clock.
//
// What sums decide is `piece_elements`: the most elements that a rank sends another one in a piece;
// 0 sends all that travel alike at once. No bit of a sum depends on it. `sent_bf16` is no decision:
// the recipe gives it (reduce_dtype), and the sums themselves follow from it, since f32 elements
// are rounded before they travel.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"
#include "program/kinds/transfer/rank_group.h"

namespace snug::program {

// reads: shards, n elements each. writes: wholes, ranks x n elements each: the shards of all ranks
// in their order. In place: updates wholes alone, where each rank's part is its shard.
struct AllGather {
  RankGroup group = RankGroup::shards;
  int32_t ranks = 1;
  int32_t nodes = 1;
  bool in_place = false;
  bool operator==(const AllGather&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"group", &AllGather::group}, Field{"ranks", &AllGather::ranks},
                 Field{"nodes", &AllGather::nodes}, Field{"in_place", &AllGather::in_place}};
  static constexpr Operand<AllGather> kShards{
      0, OperandName("shards"), Access::read, nullptr, nullptr, true, &AllGather::in_place};
  static constexpr Operand<AllGather> kWholes{1,       OperandName("wholes"), Access::write,
                                              nullptr, &AllGather::in_place,  true};
  static constexpr std::array kOperands{kShards, kWholes};
  static constexpr Traits kTraits{.category = Category::collective, .copying = Copying::begins};
};

// reads: wholes, f32 or bf16, ranks x n elements each. writes (or adds to): shards, n elements
// each: the sums over the ranks of this rank's part. Elements after the last of the tensor become
// 0. In place: updates wholes alone, of which this rank's part is then the sum, and the others are
// undefined.
struct ReduceScatter {
  RankGroup group = RankGroup::shards;
  int32_t ranks = 1;
  int32_t nodes = 1;
  bool in_place = false;
  bool accumulate = false;
  bool sent_bf16 = false;
  int64_t piece_elements = 0;
  bool operator==(const ReduceScatter&) const = default;
  // Not part of the rate key (Priced::alike): a measured sample includes cutting the sum into
  // pieces; without a sample, messages and launches are counted for each piece.
  static constexpr auto kFields = std::tuple{
      Field{"group", &ReduceScatter::group},
      Field{"ranks", &ReduceScatter::ranks},
      Field{"nodes", &ReduceScatter::nodes},
      Field{"in_place", &ReduceScatter::in_place},
      Field{"accumulate", &ReduceScatter::accumulate},
      Field{"sent_bf16", &ReduceScatter::sent_bf16},
      Decision{"piece_elements", &ReduceScatter::piece_elements, Priced::alike, Noted::in_pieces}};
  static constexpr Operand<ReduceScatter> kWholes{0,       OperandName("wholes"),    Access::read,
                                                  nullptr, &ReduceScatter::in_place, true};
  static constexpr Operand<ReduceScatter> kShards{
      1,    OperandName("shards"),   Access::write, nullptr, &ReduceScatter::accumulate,
      true, &ReduceScatter::in_place};
  static constexpr std::array kOperands{kWholes, kShards};
  static constexpr Traits kTraits{.category = Category::collective, .copying = Copying::begins};
};

// updates: values, f32 or bf16: the sums over the ranks, on all of them.
struct AllReduce {
  RankGroup group = RankGroup::all;
  int32_t ranks = 1;
  int32_t nodes = 1;
  bool sent_bf16 = false;
  int64_t piece_elements = 0;
  bool operator==(const AllReduce&) const = default;
  // Not part of the rate key (Priced::alike): a measured sample includes cutting the sum into
  // pieces; without a sample, messages and launches are counted for each piece.
  static constexpr auto kFields = std::tuple{
      Field{"group", &AllReduce::group}, Field{"ranks", &AllReduce::ranks},
      Field{"nodes", &AllReduce::nodes}, Field{"sent_bf16", &AllReduce::sent_bf16},
      Decision{"piece_elements", &AllReduce::piece_elements, Priced::alike, Noted::in_pieces}};
  static constexpr auto kValues = update_all<AllReduce>(0, "values");
  static constexpr std::array kOperands{kValues};
  static constexpr Traits kTraits{.category = Category::collective, .copying = Copying::begins};
};

}  // namespace snug::program
