// How the messages of a HostCommunicator travel: between threads (local) or processes (mpi). A
// transport is used by one thread, except for interrupt().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snug::comm {

struct Outgoing {
  int peer = 0;  // a rank of the group
  const void* data = nullptr;
  int64_t bytes = 0;
};

struct Incoming {
  int peer = 0;
  void* data = nullptr;
  int64_t bytes = 0;
};

// Why an exchange cannot end, as a clause: "rank 2 did not come within 30 s".
struct Failure {
  std::string reason;
  bool announced = false;  // the other ranks know of it already
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;

  // Sends and receives all of these messages at once. Messages between two ranks arrive in the
  // order in which they are listed. Returns when all are done, or a failure when they cannot be;
  // afterwards the memory of the messages is no longer touched.
  virtual std::optional<Failure> exchange(std::span<const Outgoing> outgoing,
                                          std::span<const Incoming> incoming) = 0;

  // Makes exchanges fail, including the one in progress. Any thread may call it. Never throws.
  virtual void interrupt(std::string_view reason) = 0;
  // Makes the exchanges of all other ranks fail with this reason. If there are several reasons, the
  // first counts. Never throws.
  virtual void announce(std::string_view reason) = 0;
  // Tells all other ranks that this one stops because of another rank's announcement. Does nothing
  // where this rank was told nothing or has announced its own reason. Never throws.
  virtual void pass_on() = 0;
  // The reasons that lower ranks announced as their own, by rank; empty for a rank that passes on
  // what it was told, and for one that announced nothing within this time.
  virtual std::vector<std::string> earlier_reasons(std::chrono::milliseconds time) = 0;

  // A transport for a subgroup of these ranks, this one among them. `context` tells the messages of
  // groups apart; it must be greater than latest_context() of every member.
  virtual std::unique_ptr<Transport> subgroup(std::span<const int> members, int context) = 0;
  // The highest context of this rank's transports.
  virtual int latest_context() const = 0;
};

// "rank 2" or "ranks 2, 5 and 7", for errors.
std::string rank_list(const std::vector<int>& ranks);

}  // namespace snug::comm
