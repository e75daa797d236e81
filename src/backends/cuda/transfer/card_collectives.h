// What ranks on cards do together, next to the kernels: on a stream of its own, in the order of the
// program, which is that of all ranks, so that groups never wait for each other in a circle. A
// collective begins when all that the stream of kernels was given before it is done; its await lets
// that stream wait for it and no other. They are never recorded in a graph. One thread queues them.
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
  // Connects the groups of the mesh, all ranks at once, before any memory of the device is planned:
  // what NCCL takes is then known. Null: a rank alone, which needs no NCCL. Throws UserError.
  // The mesh's communicators must outlive the object.
  CardCollectives(const comm::Mesh* mesh, double timeout_seconds);
  CardCollectives(const CardCollectives&) = delete;
  CardCollectives& operator=(const CardCollectives&) = delete;
  // Waits for what is under way, and ends the groups with the other ranks; without them where
  // anything failed.
  ~CardCollectives();

  // That one more collective will be begun, maybe often: what it takes of the card is made now, and
  // own kernels are loaded. Throws UserError where there is no memory for it.
  void prepare();
  // Begins it once all that `work` was given is done; returns the stream on which it is queued.
  // Throws UserError where ranks have failed; fails a CHECK where it was not prepared.
  cudaStream_t begin(const program::AllGather& gather, const Invocation& invocation,
                     cudaStream_t work);
  cudaStream_t begin(const program::ReduceScatter& reduce, const Invocation& invocation,
                     cudaStream_t work);
  cudaStream_t begin(const program::AllReduce& reduce, const Invocation& invocation,
                     cudaStream_t work);
  // Where what the await updates was begun here, `waits` waits for it; `ends`: nobody else will.
  // False: it was not begun here.
  bool await(const Invocation& invocation, cudaStream_t waits, bool ends);
  // The stream of collectives; `work` for a rank alone.
  cudaStream_t stream(cudaStream_t work) const { return stream_ ? stream_->get() : work; }

  // Throws UserError with what went wrong, if anything has.
  void check();
  // "NCCL 2.28.9", empty for a rank alone.
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
  const int exceptions_;  // under way when this was made
  CardSums sums_;
  std::optional<Stream> stream_;
  Event reached_;  // on `work`: a collective may begin
  SpareEvents spare_;
  std::unordered_map<const std::byte*, Begun> begun_;  // by the first tensor that it changes
  std::unordered_map<const comm::Communicator*, std::unique_ptr<CardGroup>> groups_;
  std::unique_ptr<CollectiveWatch> watch_;
};

}  // namespace snug::backends::cuda
