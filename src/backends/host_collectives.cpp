#include "backends/host_collectives.h"

#include <algorithm>

#include "base/error.h"
#include "comm/local.h"

namespace snug::backends {
namespace {

using program::AllGather;
using program::AllReduce;
using program::RankGroup;
using program::ReduceScatter;

// Of this rank's part of a tensor, so many elements belong to it; the rest is padding.
int64_t valid_elements(const program::Tensor& whole_or_shard, int64_t first, int64_t elements) {
  if (!whole_or_shard.whole) return elements;
  return std::clamp<int64_t>(whole_or_shard.whole->elements() - first, 0, elements);
}

base::DType sent_type(bool in_bf16, base::DType type) { return in_bf16 ? base::DType::bf16 : type; }

std::span<std::byte> scratch_of(const Invocation& invocation) {
  const Buffer& scratch = invocation.workspace;
  return {scratch.data, scratch.data == nullptr ? 0 : static_cast<size_t>(scratch.bytes())};
}

}  // namespace

comm::Communicator& HostCollectives::group_of(RankGroup group, int32_t ranks) {
  comm::Communicator* found = group == RankGroup::shards     ? mesh_.shards
                              : group == RankGroup::replicas ? mesh_.replicas
                                                             : mesh_.all;
  if (found == nullptr) {
    if (alone_ == nullptr) alone_ = comm::LocalGroup(1).communicator(0);
    found = alone_.get();
  }
  SNUG_CHECK_EQ(found->size(), ranks);
  return *found;
}

void HostCollectives::note(const Invocation& invocation, std::span<const Buffer> results,
                           comm::Communicator& group, comm::Ticket ticket) {
  begun_[results.front().data] = {&group, ticket};
  invocation.note_channel(program::Channel::interconnect);
}

void HostCollectives::begin(const AllGather& gather, const Invocation& invocation) {
  comm::Communicator& group = group_of(gather.group, gather.ranks);
  gathers_.clear();
  const std::span<const Buffer> wholes = gather.in_place ? invocation.updates : invocation.writes;
  for (size_t i = 0; i < wholes.size(); ++i) {
    const int64_t bytes = wholes[i].bytes() / gather.ranks;
    const std::byte* const shard =
        gather.in_place ? wholes[i].data + bytes * group.rank() : invocation.reads[i].data;
    gathers_.push_back({.shard = shard, .whole = wholes[i].data, .bytes = bytes});
  }
  note(invocation, wholes, group, group.begin_all_gather(gathers_, "all_gather"));
}

void HostCollectives::begin(const ReduceScatter& reduce, const Invocation& invocation) {
  comm::Communicator& group = group_of(reduce.group, reduce.ranks);
  const program::OperationView& view = *invocation.view;
  reductions_.clear();
  const std::span<const Buffer> wholes = reduce.in_place ? invocation.updates : invocation.reads;
  const std::span<const Buffer> shards =
      reduce.in_place || reduce.accumulate ? invocation.updates : invocation.writes;
  const std::vector<program::TensorId>& shard_ids =
      reduce.in_place || reduce.accumulate ? view.operation.updates : view.operation.writes;
  for (size_t i = 0; i < wholes.size(); ++i) {
    const int64_t elements = wholes[i].elements() / reduce.ranks;
    const int64_t first = elements * group.rank();
    std::byte* const shard =
        reduce.in_place ? wholes[i].data + first * base::size_of(wholes[i].dtype) : shards[i].data;
    reductions_.push_back(
        {.whole = wholes[i].data,
         .shard = shard,
         .elements = elements,
         .whole_type = wholes[i].dtype,
         .shard_type = shards[i].dtype,
         .sent_type = sent_type(reduce.sent_bf16, wholes[i].dtype),
         .add = reduce.accumulate,
         .valid = valid_elements(view.program.tensor(shard_ids[i]), first, elements)});
  }
  note(invocation, shards, group,
       group.begin_reduce_scatter(reductions_, scratch_of(invocation), "reduce_scatter"));
}

void HostCollectives::begin(const AllReduce& reduce, const Invocation& invocation) {
  comm::Communicator& group = group_of(reduce.group, reduce.ranks);
  sums_.clear();
  for (const Buffer& values : invocation.updates)
    sums_.push_back({.values = values.data,
                     .elements = values.elements(),
                     .type = values.dtype,
                     .sent_type = sent_type(reduce.sent_bf16, values.dtype)});
  note(invocation, invocation.updates, group,
       group.begin_all_reduce(sums_, scratch_of(invocation), "all_reduce"));
}

void HostCollectives::await(const Invocation& invocation) {
  const auto begun = begun_.find(invocation.updates.front().data);
  if (begun == begun_.end()) return;
  begun->second.group->wait(begun->second.ticket);
  begun_.erase(begun);
}

}  // namespace snug::backends
