// The state that the ranks of a LocalGroup share: messages in transit, and which rank stopped and
// why. The data of a message stays in its sender's memory until the receiver copies it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "comm/local.h"
#include "comm/transport.h"

namespace snug::comm {

class LocalHub {
 public:
  using Clock = std::chrono::steady_clock;
  // The group that exchanges: the world rank of each of its ranks, and the rank of the caller.
  struct Group {
    std::vector<int> members;
    int rank;
    int context;
  };

  LocalHub(int ranks, const LocalOptions& options);

  std::optional<Failure> exchange(const Group& group, std::span<const Outgoing> outgoing,
                                  std::span<const Incoming> incoming);
  // The first stop counts for the group, and the first reason of each rank is kept.
  void stop(int world_rank, std::string_view reason);
  // As in Transport.
  void pass_on(int world_rank);
  std::vector<std::string> earlier_reasons(int world_rank, std::chrono::milliseconds time);
  void leave(const Group& group);
  void use_context(int world_rank, int context);
  int latest_context(int world_rank);
  int size() const { return static_cast<int>(latest_context_.size()); }

 private:
  struct Posted {
    const void* data;
    int64_t bytes;
    Clock::time_point arrival;
    int* unsent;  // counts the messages of the sender's exchange that are not delivered yet
    bool copied_now = false;
  };
  struct Stop {
    int rank;
    std::string reason;
  };
  using Link = std::tuple<int, int, int>;  // (context, sending rank, receiving rank)

  void post(const Group& group, const Outgoing& message, int* unsent);
  std::optional<Failure> receive(const Group& group, std::span<const Incoming> incoming,
                                 Clock::time_point limit, std::unique_lock<std::mutex>& lock);
  void take(std::deque<Posted>& posted, const Incoming& message,
            std::unique_lock<std::mutex>& lock);
  std::optional<Failure> stopped(const Group& group, int peer) const;
  Failure missing(const Group& group, std::span<const Incoming> incoming);
  Failure not_taken(const Group& group);
  void withdraw(const Group& group, std::unique_lock<std::mutex>& lock);

  const LocalOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Link, std::deque<Posted>> links_;
  std::vector<Clock::time_point> free_;  // when each rank's link has sent what was posted
  std::vector<int> latest_context_;      // the highest context of each rank
  std::set<std::pair<int, int>> left_;   // (context, rank) pairs of ranks that left
  std::set<int> gave_up_;                // ranks whose messages were withdrawn
  std::optional<Stop> stop_;
  std::map<int, std::string> reasons_;  // by rank; empty for a rank that was told another's reason
};

}  // namespace snug::comm
