// A group of ranks whose GPUs NCCL connects. No call waits for ever: operations in progress are
// polled until the time limit. Messages go on the given stream, in an order that must be the same
// on all ranks. Any thread may call abort() and error(), only one thread everything else.
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
  // Creates the group on the current device. Returns when all ranks have arrived; they identify the
  // group by an id that rank 0 creates and `host` sends to all. Throws UserError, on all ranks
  // where one has no NCCL.
  CardGroup(comm::Communicator& host, double timeout_seconds);
  CardGroup(const CardGroup&) = delete;
  CardGroup& operator=(const CardGroup&) = delete;
  // Aborts the group without the other ranks, unless it was closed.
  ~CardGroup();

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Queue a collective on device memory and return. Throw UserError with NCCL's message.
  void all_gather(std::span<const comm::GatherPart> parts, cudaStream_t stream);
  void exchange(std::span<const comm::Outgoing> outgoing, std::span<const comm::Incoming> incoming,
                cudaStream_t stream);

  // The error of queued work; empty if there is none so far.
  std::string error();
  // Ends queued work on this rank, and only here, at once, in whatever state it is. Nothing can be
  // queued afterwards.
  void abort();
  // Closes the group together with the other ranks. Requires that all queued work is done.
  void close();

 private:
  // Throws UserError where a call failed or does not end in time.
  void settle(nccl::Result result, const char* what, double seconds);
  void check_queued(nccl::Result result, const char* what);
  std::string words_of(nccl::Result result) const;
  nccl::Communicator* open() const;

  const nccl::Functions* nccl_ = nullptr;
  const int rank_;
  const int size_;
  const double timeout_seconds_;
  std::mutex mutex_;  // guards the communicator, which two threads must not use at once
  nccl::Communicator* communicator_ = nullptr;
};

// For example "2.28.9". Throws UserError where there is no library.
std::string nccl_version();

}  // namespace snug::backends::cuda
