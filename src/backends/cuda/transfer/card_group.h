// A group of ranks whose cards NCCL connects. No call waits without an end: what is in progress is
// asked for until the time limit. Messages go on the stream that is given, in its order, which is
// the same on all ranks. abort() and error() may be called by any thread, all else by one.
#pragma once

#include <mutex>
#include <span>
#include <string>

#include "backends/cuda/library/nccl_library.h"
#include "comm/communicator.h"
#include "comm/transport.h"

namespace snug::backends::cuda {

class CardGroup {
 public:
  // Makes the group on the device that is current. Returns when all ranks have come; they are told
  // apart from other groups by an id that rank 0 makes and `host` gives to all. Throws UserError,
  // on all ranks where one has no NCCL.
  CardGroup(comm::Communicator& host, double timeout_seconds);
  CardGroup(const CardGroup&) = delete;
  CardGroup& operator=(const CardGroup&) = delete;
  // Ends the group without the others, unless it was closed.
  ~CardGroup();

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Queued when they return; in memory of the device. Throw UserError with what NCCL says.
  void all_gather(std::span<const comm::GatherPart> parts, cudaStream_t stream);
  void exchange(std::span<const comm::Outgoing> outgoing, std::span<const comm::Incoming> incoming,
                cudaStream_t stream);

  // What went wrong with what was queued; empty: nothing so far.
  std::string error();
  // Lets what is queued end at once, whatever it has done, here and only here. Nothing can be
  // queued afterwards.
  void abort();
  // Ends the group together with the others. Requires that all that was queued is done.
  void close();

 private:
  // Throws UserError where a call failed, or does not end.
  void settle(nccl::Result result, const char* what, double seconds);
  void check_queued(nccl::Result result, const char* what);
  std::string words_of(nccl::Result result) const;
  nccl::Communicator* open() const;

  const nccl::Functions* nccl_ = nullptr;
  const int rank_;
  const int size_;
  const double timeout_seconds_;
  std::mutex mutex_;  // of the communicator, which two threads may not use at once
  nccl::Communicator* communicator_ = nullptr;
};

// "2.28.9". Throws UserError where there is no library.
std::string nccl_version();

}  // namespace snug::backends::cuda
