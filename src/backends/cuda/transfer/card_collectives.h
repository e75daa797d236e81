// Collectives of ranks on GPUs, in parallel with the kernels: on a stream of their own, in the
// order of the program, which is the same on all ranks, so that groups cannot deadlock. A
// collective begins when all earlier work on the kernels' stream is done; its await makes that
// stream, and no other, wait for it. They are never recorded in a graph. One thread queues them.
// See docs/cuda.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "backends/cuda/device/stream.h"
#include "backends/cuda/transfer/card_group.h"
#include "backends/cuda/transfer/card_sums.h"
#include "backends/cuda/transfer/collective_watch.h"
#include "backends/invocation.h"
#include "comm/mesh.h"
#include "program/kinds/transfer/rank_group.h"

namespace snug::backends::cuda {

class CardCollectives {
 public:
  // Connects the groups of the mesh; all ranks do so at once, before any device memory is planned,
  // so that NCCL's memory is known. Null: a single rank, which needs no NCCL. Throws UserError. The
  // mesh's communicators must outlive the object.
  CardCollectives(const comm::Mesh* mesh, double timeout_seconds);
  CardCollectives(const CardCollectives&) = delete;
  CardCollectives& operator=(const CardCollectives&) = delete;
  // Waits for work in progress and closes the groups together with the other ranks, or without them
  // if anything failed.
  ~CardCollectives();

  // Announces one more collective, which may be begun many times: creates what it needs of the GPU,
  // and loads Snug's own kernels for it. Throws UserError where there is not enough memory.
  void prepare();
  // Begin the collective once all earlier work on `work` is done; return the stream on which it is
  // queued. Throw UserError where ranks have failed; fail a CHECK where it was not prepared.
  cudaStream_t begin(const program::AllGather& gather, const Invocation& invocation,
                     cudaStream_t work);
  cudaStream_t begin(const program::ReduceScatter& reduce, const Invocation& invocation,
                     cudaStream_t work);
  cudaStream_t begin(const program::AllReduce& reduce, const Invocation& invocation,
                     cudaStream_t work);
  // If the operands of this await belong to a collective that was begun here, makes `waits` wait
  // for it; `ends` says that this is the last wait for it. False if it was not begun here.
  bool await(const Invocation& invocation, cudaStream_t waits, bool ends);
  // The stream of collectives; `work` for a single rank.
  cudaStream_t stream(cudaStream_t work) const { return stream_ ? stream_->get() : work; }

  // Throws a UserError that says what went wrong, if anything has.
  void check();
  // For example "NCCL 2.28.9"; empty for a single rank.
  std::string library_version() const;
  int shard_rank() const { return mesh_.shard(); }

 private:
  struct Begun {
    Event ended;
    bool is_under_way = false;
  };
  template <typename Struct, typename Perform>
  cudaStream_t queue(const Struct& collective, const Invocation& invocation, cudaStream_t work,
                     const Perform& perform);
  void connect(comm::Communicator& host, double timeout_seconds);
  void try_messages();
  CardGroup* group(program::RankGroup group, int32_t ranks);
  std::string describe(std::string_view name) const;
  void let_go(const std::string& reason);

  const comm::Mesh mesh_;
  const int exceptions_;  // exceptions in flight when this was constructed
  CardSums sums_;
  std::optional<Stream> stream_;
  Event reached_;  // on `work`: a collective may begin
  SpareEvents spare_;
  std::unordered_map<const std::byte*, Begun> begun_;  // by the first tensor of each
  std::unordered_map<const comm::Communicator*, std::unique_ptr<CardGroup>> groups_;
  std::unique_ptr<CollectiveWatch> watch_;
};

}  // namespace snug::backends::cuda
