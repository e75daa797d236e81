#include "backends/host_collectives.h"

#include <string_view>

#include "backends/collective_parts.h"
#include "comm/local.h"
#include "program/kinds/transfer/collective.h"

namespace snug::backends {

using program::AllGather;
using program::AllReduce;
using program::RankGroup;
using program::ReduceScatter;

namespace {

// The name of a collective in errors: that of its first result; its results usually belong to one
// layer.
std::string_view name_of(const Invocation& invocation) {
  const program::Operation& operation = invocation.view->operation;
  const auto& results = operation.writes.empty() ? operation.updates : operation.writes;
  return invocation.view->program.tensor(results.front()).name;
}

}  // namespace

comm::Communicator& HostCollectives::group(RankGroup group, int32_t ranks) {
  if (comm::Communicator* found = group_of(mesh_, group, ranks); found != nullptr) return *found;
  if (alone_ == nullptr) alone_ = comm::LocalGroup(1).communicator(0);
  return *alone_;
}

void HostCollectives::note(const Invocation& invocation, std::span<const Buffer> results,
                           comm::Communicator& group, comm::Ticket ticket) {
  begun_[results.front().data] = {&group, ticket};
  invocation.note_channel(program::Channel::interconnect);
}

void HostCollectives::begin(const AllGather& gather, const Invocation& invocation) {
  comm::Communicator& ranks = group(gather.group, gather.ranks);
  note(invocation, results_of(gather, invocation), ranks,
       ranks.begin_all_gather(parts_of(gather, invocation, ranks.rank()), name_of(invocation)));
}

void HostCollectives::begin(const ReduceScatter& reduce, const Invocation& invocation) {
  comm::Communicator& ranks = group(reduce.group, reduce.ranks);
  note(invocation, results_of(reduce, invocation), ranks,
       ranks.begin_reduce_scatter(parts_of(reduce, invocation, ranks.rank()),
                                  pieces_of(reduce, invocation), name_of(invocation)));
}

void HostCollectives::begin(const AllReduce& reduce, const Invocation& invocation) {
  comm::Communicator& ranks = group(reduce.group, reduce.ranks);
  note(invocation, results_of(reduce, invocation), ranks,
       ranks.begin_all_reduce(parts_of(reduce, invocation, ranks.rank()),
                              pieces_of(reduce, invocation), name_of(invocation)));
}

void HostCollectives::await(const Invocation& invocation) {
  const auto begun = begun_.find(invocation.all(program::Access::update).front().data);
  if (begun == begun_.end()) return;  // a copy, which is done as soon as it begins
  begun->second.group->wait(begun->second.ticket);
  begun_.erase(begun);
}

}  // namespace snug::backends
