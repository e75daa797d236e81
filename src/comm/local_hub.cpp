#include "comm/local_hub.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "base/error.h"

namespace snug::comm {
namespace {

LocalHub::Clock::duration to_clock(std::chrono::duration<double> duration) {
  return std::chrono::duration_cast<LocalHub::Clock::duration>(duration);
}

}  // namespace

LocalHub::LocalHub(int ranks, const LocalOptions& options)
    : options_(options), free_(ranks), latest_context_(ranks, 0) {}

std::optional<Failure> LocalHub::exchange(const Group& group, std::span<const Outgoing> outgoing,
                                          std::span<const Incoming> incoming) {
  std::unique_lock lock(mutex_);
  const auto limit = Clock::now() + to_clock(options_.timeout);
  int unsent = 0;
  for (const Outgoing& message : outgoing) post(group, message, &unsent);
  changed_.notify_all();
  std::optional<Failure> failure = receive(group, incoming, limit, lock);
  while (!failure && unsent > 0) {
    failure = stopped(group, -1);
    if (failure) break;
    if (changed_.wait_until(lock, limit) == std::cv_status::timeout && unsent > 0)
      failure = not_taken(group);
  }
  if (failure) withdraw(group, lock);
  return failure;
}

void LocalHub::post(const Group& group, const Outgoing& message, int* unsent) {
  const int from = group.members[group.rank];
  const int to = group.members[message.peer];
  auto& free = free_[from];
  free = std::max(free, Clock::now());
  if (options_.bytes_per_second > 0)
    free += to_clock(std::chrono::duration<double>(static_cast<double>(message.bytes) /
                                                   options_.bytes_per_second));
  const auto arrival = free + to_clock(options_.delay_per_message);
  links_[{group.context, from, to}].push_back({message.data, message.bytes, arrival, unsent});
  ++*unsent;
}

// Receives one message after another, which costs nothing, since all of them travel meanwhile.
std::optional<Failure> LocalHub::receive(const Group& group, std::span<const Incoming> incoming,
                                         Clock::time_point limit,
                                         std::unique_lock<std::mutex>& lock) {
  const int to = group.members[group.rank];
  for (size_t i = 0; i < incoming.size(); ++i) {
    auto& posted = links_[{group.context, group.members[incoming[i].peer], to}];
    while (true) {
      const auto now = Clock::now();
      if (!posted.empty() && posted.front().arrival <= now) break;
      if (auto failure = stopped(group, posted.empty() ? incoming[i].peer : -1)) return failure;
      if (now >= limit) return missing(group, incoming.subspan(i));
      changed_.wait_until(lock, posted.empty() ? limit : std::min(limit, posted.front().arrival));
    }
    take(posted, incoming[i], lock);
  }
  return std::nullopt;
}

// The mutex is unlocked during the copy, while the message keeps its place in the queue.
void LocalHub::take(std::deque<Posted>& posted, const Incoming& message,
                    std::unique_lock<std::mutex>& lock) {
  Posted& front = posted.front();
  SNUG_CHECK_EQ(front.bytes, message.bytes);
  front.copied_now = true;
  lock.unlock();
  std::memcpy(message.data, front.data, message.bytes);
  lock.lock();
  --*front.unsent;
  posted.pop_front();
  changed_.notify_all();
}

// Why an exchange fails, if it does. That a rank left counts only where it is the `peer` still
// waited for; -1 means no peer.
std::optional<Failure> LocalHub::stopped(const Group& group, int peer) const {
  if (stop_) return Failure{fmt::format("rank {} stopped: {}", stop_->rank, stop_->reason), true};
  if (peer >= 0 && left_.contains({group.context, group.members[peer]}))
    return Failure{fmt::format("rank {} has ended already", group.members[peer]), false};
  return std::nullopt;
}

Failure LocalHub::missing(const Group& group, std::span<const Incoming> incoming) {
  const int to = group.members[group.rank];
  std::set<int> ranks;
  for (const Incoming& message : incoming) {
    const int from = group.members[message.peer];
    const auto& posted = links_[{group.context, from, to}];
    const bool late = posted.empty() || posted.front().arrival > Clock::now();
    if (late && !gave_up_.contains(from)) ranks.insert(from);
  }
  // Why these ranks gave up is not known here.
  if (ranks.empty()) return {rank_list({gave_up_.begin(), gave_up_.end()}) + " gave up", false};
  return {fmt::format("{} did not come within {} s", rank_list({ranks.begin(), ranks.end()}),
                      options_.timeout.count()),
          false};
}

Failure LocalHub::not_taken(const Group& group) {
  std::vector<int> ranks;
  for (const int to : group.members)
    if (!links_[{group.context, group.members[group.rank], to}].empty()) ranks.push_back(to);
  return {fmt::format("{} did not come within {} s", rank_list(ranks), options_.timeout.count()),
          false};
}

// After a failure the data of messages may be freed, so they are removed and no receiver finds
// them.
void LocalHub::withdraw(const Group& group, std::unique_lock<std::mutex>& lock) {
  gave_up_.insert(group.members[group.rank]);
  for (const int to : group.members) {
    auto& posted = links_[{group.context, group.members[group.rank], to}];
    changed_.wait(lock, [&] { return posted.empty() || !posted.front().copied_now; });
    posted.clear();
  }
}

void LocalHub::stop(int world_rank, std::string_view reason) {
  const std::lock_guard lock(mutex_);
  if (!stop_) stop_ = Stop{world_rank, std::string(reason)};
  reasons_.emplace(world_rank, reason);
  changed_.notify_all();
}

void LocalHub::pass_on(int world_rank) {
  const std::lock_guard lock(mutex_);
  if (stop_) reasons_.emplace(world_rank, "");
  changed_.notify_all();
}

std::vector<std::string> LocalHub::earlier_reasons(int world_rank, std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  const auto count = [&] {
    return std::distance(reasons_.begin(), reasons_.lower_bound(world_rank));
  };
  changed_.wait_for(lock, time, [&] { return count() == world_rank; });
  std::vector<std::string> reasons(static_cast<size_t>(world_rank));
  for (auto entry = reasons_.begin(); entry != reasons_.lower_bound(world_rank); ++entry)
    reasons[static_cast<size_t>(entry->first)] = entry->second;
  return reasons;
}

void LocalHub::leave(const Group& group) {
  const std::lock_guard lock(mutex_);
  left_.insert({group.context, group.members[group.rank]});
  changed_.notify_all();
}

void LocalHub::use_context(int world_rank, int context) {
  const std::lock_guard lock(mutex_);
  latest_context_[world_rank] = std::max(latest_context_[world_rank], context);
}

int LocalHub::latest_context(int world_rank) {
  const std::lock_guard lock(mutex_);
  return latest_context_[world_rank];
}

}  // namespace snug::comm
