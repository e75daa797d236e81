#include "backends/collective_parts.h"

#include <algorithm>

#include "base/error.h"
#include "program/kinds/transfer/collective.h"

namespace snug::backends {
namespace {

using program::Access;
using program::AllGather;
using program::AllReduce;
using program::RankGroup;
using program::ReduceScatter;

// How many elements of this rank's part belong to the tensor; the rest is padding.
int64_t valid_elements(const program::Tensor& whole_or_shard, int64_t first, int64_t elements) {
  if (!whole_or_shard.whole) return elements;
  return std::clamp<int64_t>(whole_or_shard.whole->elements() - first, 0, elements);
}

base::DType sent_type(bool in_bf16, base::DType type) { return in_bf16 ? base::DType::bf16 : type; }

comm::SumPieces pieces_within(int64_t elements, const Invocation& invocation) {
  const Buffer& scratch = invocation.workspace;
  return {
      .elements = elements,
      .scratch = {scratch.data, scratch.data == nullptr ? 0 : static_cast<size_t>(scratch.bytes())},
      .done = invocation.trace != nullptr ? &invocation.trace->pieces : nullptr};
}

bool updates_shards(const ReduceScatter& reduce) { return reduce.in_place || reduce.accumulate; }

}  // namespace

std::span<const Buffer> results_of(const AllGather& gather, const Invocation& invocation) {
  return invocation.all(gather.in_place ? Access::update : Access::write);
}

std::span<const Buffer> results_of(const ReduceScatter& reduce, const Invocation& invocation) {
  return invocation.all(updates_shards(reduce) ? Access::update : Access::write);
}

std::span<const Buffer> results_of(const AllReduce& /*reduce*/, const Invocation& invocation) {
  return invocation.all(Access::update);
}

std::vector<comm::GatherPart> parts_of(const AllGather& gather, const Invocation& invocation,
                                       int rank) {
  std::vector<comm::GatherPart> parts;
  const std::span<const Buffer> wholes = results_of(gather, invocation);
  const std::span<const Buffer> shards = invocation.all(Access::read);
  for (size_t i = 0; i < wholes.size(); ++i) {
    const int64_t bytes = wholes[i].bytes() / gather.ranks;
    const std::byte* const shard = gather.in_place ? wholes[i].data + bytes * rank : shards[i].data;
    parts.push_back({.shard = shard, .whole = wholes[i].data, .bytes = bytes});
  }
  return parts;
}

std::vector<comm::ReducePart> parts_of(const ReduceScatter& reduce, const Invocation& invocation,
                                       int rank) {
  std::vector<comm::ReducePart> parts;
  const program::OperationView& view = *invocation.view;
  const std::span<const Buffer> wholes =
      invocation.all(reduce.in_place ? Access::update : Access::read);
  const std::span<const Buffer> shards = results_of(reduce, invocation);
  const std::vector<program::TensorId>& shard_ids =
      updates_shards(reduce) ? view.operation.updates : view.operation.writes;
  for (size_t i = 0; i < wholes.size(); ++i) {
    const int64_t elements = wholes[i].elements() / reduce.ranks;
    const int64_t first = elements * rank;
    std::byte* const shard =
        reduce.in_place ? wholes[i].data + first * base::size_of(wholes[i].dtype) : shards[i].data;
    parts.push_back({.whole = wholes[i].data,
                     .shard = shard,
                     .elements = elements,
                     .whole_type = wholes[i].dtype,
                     .shard_type = shards[i].dtype,
                     .sent_type = sent_type(reduce.sent_bf16, wholes[i].dtype),
                     .add = reduce.accumulate,
                     .valid = valid_elements(view.program.tensor(shard_ids[i]), first, elements)});
  }
  return parts;
}

std::vector<comm::SumPart> parts_of(const AllReduce& reduce, const Invocation& invocation,
                                    int /*rank*/) {
  std::vector<comm::SumPart> parts;
  for (const Buffer& values : invocation.all(Access::update))
    parts.push_back({.values = values.data,
                     .elements = values.elements(),
                     .type = values.dtype,
                     .sent_type = sent_type(reduce.sent_bf16, values.dtype)});
  return parts;
}

comm::SumPieces pieces_of(const ReduceScatter& reduce, const Invocation& invocation) {
  return pieces_within(reduce.piece_elements, invocation);
}

comm::SumPieces pieces_of(const AllReduce& reduce, const Invocation& invocation) {
  return pieces_within(reduce.piece_elements, invocation);
}

comm::Communicator* group_of(const comm::Mesh& mesh, RankGroup group, int32_t ranks) {
  comm::Communicator* found = group == RankGroup::shards     ? mesh.shards
                              : group == RankGroup::replicas ? mesh.replicas
                                                             : mesh.all;
  SNUG_CHECK_EQ(comm::Mesh::size_of(found), ranks);
  return found;
}

}  // namespace snug::backends
