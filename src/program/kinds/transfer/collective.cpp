#include "program/kinds/transfer/collective.h"

#include <algorithm>

#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/transfer/collective_pieces.h"

namespace snug::program {
namespace {

const Tensor& tensor_of(const OperationView& view, TensorId id) { return view.program.tensor(id); }

bool is_sum_type(DType type) {
  return type == DType::f32 || type == DType::bf16 || type == DType::f64;
}

template <typename Struct>
void check_ranks(ShapeRule& rule, const Struct& collective, const OperationView& view) {
  rule.require(collective.ranks >= 1, "is of no rank");
  rule.require(view.operation.channel == Channel::interconnect,
               "runs on another channel than interconnect");
  for_each_tensor(view.operation, [&](TensorId id) {
    const Tensor& tensor = tensor_of(view, id);
    rule.require(!tensor.is_view() || tensor.view.strides == dense_strides(tensor.shape),
                 "sends a view that is not dense");
  });
}

// Checks the pairs of a part and a whole.
void check_parts(ShapeRule& rule, const std::vector<TensorId>& shards,
                 const std::vector<TensorId>& wholes, int32_t ranks, const OperationView& view) {
  rule.require(shards.size() == wholes.size(), "has not as many shards as wholes");
  for (size_t i = 0; i < std::min(shards.size(), wholes.size()); ++i)
    rule.require(tensor_of(view, wholes[i]).shape.elements() ==
                     tensor_of(view, shards[i]).shape.elements() * ranks,
                 "has a whole that is not all ranks' shards");
}

void check_divided(ShapeRule& rule, const std::vector<TensorId>& wholes, int32_t ranks,
                   const OperationView& view) {
  for (const TensorId id : wholes)
    rule.require(tensor_of(view, id).shape.elements() % ranks == 0,
                 "has a whole that its ranks do not divide");
}

std::string shape_error(const AllGather& gather, const OperationView& view) {
  ShapeRule rule(view);
  check_ranks(rule, gather, view);
  const Operation& operation = view.operation;
  if (gather.in_place) {
    check_divided(rule, operation.updates, gather.ranks, view);
    return rule.error();
  }
  check_parts(rule, operation.reads, operation.writes, gather.ranks, view);
  for (const auto& [shard, whole] : copies_of(operation))
    rule.require(tensor_of(view, shard).dtype == tensor_of(view, whole).dtype,
                 "gathers in another element type");
  return rule.error();
}

std::string shape_error(const ReduceScatter& reduce, const OperationView& view) {
  ShapeRule rule(view);
  check_ranks(rule, reduce, view);
  rule.require(!reduce.in_place || !reduce.accumulate, "adds to what it writes over");
  rule.require(reduce.piece_elements >= 0, "sends pieces of less than nothing");
  const Operation& operation = view.operation;
  for_each_tensor(operation, [&](TensorId id) {
    if (id != operation.workspace)
      rule.require(is_sum_type(tensor_of(view, id).dtype), "sums what is neither f32 nor bf16");
  });
  if (reduce.in_place)
    check_divided(rule, operation.updates, reduce.ranks, view);
  else
    check_parts(rule, reduce.accumulate ? operation.updates : operation.writes, operation.reads,
                reduce.ranks, view);
  return rule.error();
}

std::string shape_error(const AllReduce& reduce, const OperationView& view) {
  ShapeRule rule(view);
  check_ranks(rule, reduce, view);
  rule.require(reduce.piece_elements >= 0, "sends pieces of less than nothing");
  for (const TensorId id : view.operation.updates)
    rule.require(is_sum_type(tensor_of(view, id).dtype), "sums what is neither f32 nor bf16");
  return rule.error();
}

// The bytes that a rank sends: all of each tensor except its own part, in the type that is sent.
double sent_bytes(const std::vector<TensorId>& wholes, int32_t ranks, bool in_bf16,
                  const OperationView& view) {
  double bytes = 0;
  for (const TensorId id : wholes) {
    const Tensor& whole = tensor_of(view, id);
    const auto all = static_cast<double>(in_bf16 ? whole.shape.elements() * 2 : whole.bytes());
    bytes += all * (ranks - 1) / ranks;
  }
  return bytes;
}

Cost cost(const AllGather& gather, const OperationView& view, const Extent&) {
  const Operation& operation = view.operation;
  return {.flops = 0,
          .bytes = sent_bytes(gather.in_place ? operation.updates : operation.writes, gather.ranks,
                              false, view),
          .launches = 0};
}
Cost cost(const ReduceScatter& reduce, const OperationView& view, const Extent&) {
  const Operation& operation = view.operation;
  return {.flops = 0,
          .bytes = sent_bytes(reduce.in_place ? operation.updates : operation.reads, reduce.ranks,
                              reduce.sent_bf16, view),
          .launches = 0};
}
// In each piece, every rank has a slice of the same length (padded). It sends slices before they
// are summed, and its own slice after that.
Cost cost(const AllReduce& reduce, const OperationView& view, const Extent&) {
  int64_t bytes = 0;
  for (const SumPiece& piece : pieces_of_sum(reduce, view))
    bytes += 2 * (reduce.ranks - 1) * piece.elements * base::size_of(piece.sent_type);
  return {.flops = 0, .bytes = static_cast<double>(bytes), .launches = 0};
}

// In each round, a rank sends one message to every other rank. With a ring these messages are
// sequential, but no algorithm has fewer of them. The rounds of a piece begin when those of the
// piece before it have ended.
template <typename Struct>
RateKey key_of(Kind kind, const Struct& collective, size_t rounds, const Cost& cost) {
  return {.form = {.kind = name_of(kind), .ranks = collective.ranks, .nodes = collective.nodes},
          .shape = {std::max(1.0, cost.bytes)},
          .unit = collective.nodes > 1 ? Work::network_bytes : Work::interconnect_bytes,
          .messages = static_cast<double>(rounds) * (collective.ranks - 1)};
}

// The runtime gathers its staging memory over the hosts' transport, whatever the device.
bool is_between_hosts(const OperationView& view) {
  return std::ranges::all_of(copies_of(view.operation), [&](const auto& copy) {
    return tensor_of(view, copy.second).role == Role::staging;
  });
}

RateKey rate_key(const AllGather& gather, const OperationView& view, const Extent& extent) {
  RateKey key = key_of(Kind::all_gather, gather, 1, cost(gather, view, extent));
  key.form.between_hosts = is_between_hosts(view);
  return key;
}
RateKey rate_key(const ReduceScatter& reduce, const OperationView& view, const Extent& extent) {
  return key_of(Kind::reduce_scatter, reduce, pieces_of_sum(reduce, view).size(),
                cost(reduce, view, extent));
}
RateKey rate_key(const AllReduce& reduce, const OperationView& view, const Extent& extent) {
  return key_of(Kind::all_reduce, reduce, 2 * pieces_of_sum(reduce, view).size(),
                cost(reduce, view, extent));
}

template <SumOverRanks Struct>
WorkList work_of_sum(const Struct& reduce, const OperationView& view,
                     const BatchBounds& /*bounds*/) {
  WorkList work;
  for (const SumPiece& piece : pieces_of_sum(reduce, view)) work.pieces.push_back(piece.elements);
  return work;
}

}  // namespace

SNUG_DEFINE_KIND(AllGather, .rate_key = rate_key);
SNUG_DEFINE_KIND(ReduceScatter, .work = work_of_sum, .rate_key = rate_key);
SNUG_DEFINE_KIND(AllReduce, .work = work_of_sum, .rate_key = rate_key);

}  // namespace snug::program
