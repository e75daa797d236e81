// Copies that run next to the kernels of a stream: each direction has a stream of its own, in which
// copies run in the order in which they are begun, so both directions of the link are busy at once.
// A wait is for one copy, named by the address that it writes. One thread queues them. They can be
// recorded for a graph, if all that is begun is awaited in it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "backends/cuda/device/stream.h"
#include "program/ir/operation.h"

namespace snug::backends::cuda {

class SideCopies {
 public:
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    int64_t bytes = 0;
  };

  // Makes now what one more copy takes of the device; it may be begun often. Throws UserError where
  // there is no memory for it.
  void prepare() { spare_.make_one(); }
  // Copies once all that `work` was given is done; on the channel that computes, as the next thing
  // that `work` does. Host memory must be pinned. Returns the stream that copies. Fails a CHECK
  // where it was not prepared.
  cudaStream_t begin(program::Channel channel, const Copy& copy, cudaStream_t work);
  // What `work` is given from here on waits for the copy to `to` that was begun last. Fails a CHECK
  // where none was begun since `work` waited for one.
  void await(const void* to, cudaStream_t work);
  // The stream that copies on a channel.
  cudaStream_t stream_of(program::Channel channel, cudaStream_t work) const;

 private:
  struct Begun {
    Event finished;
    std::vector<cudaStream_t> waited{};  // streams that have waited for it
  };

  Stream to_device_;
  Stream to_host_;
  Event reached_;  // on `work`: a copy may begin
  SpareEvents spare_;
  std::unordered_map<const void*, Begun> begun_;  // by what the copy writes
};

}  // namespace snug::backends::cuda
