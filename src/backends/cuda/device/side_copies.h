// Copies that run in parallel with the kernels of a stream: each direction has its own stream, in
// which copies run in the order in which they are begun, so both directions of the link can be
// busy. A wait is for one copy, identified by its destination address. One thread queues them. They
// can be recorded in a graph, if every copy that is begun is also awaited in it.
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

  // Creates what one more copy needs of the device; the copy may be begun many times. Throws
  // UserError where there is no memory for it.
  void prepare() { spare_.make_one(); }
  // Copies once all earlier work on `work` is done; on the compute channel it is queued on `work`
  // itself. Host memory must be pinned. Returns the stream that copies. Fails a CHECK where the
  // copy was not prepared.
  cudaStream_t begin(program::Channel channel, const Copy& copy, cudaStream_t work);
  // Makes later work on `work` wait for the latest copy to `to`. Fails a CHECK where none was begun
  // since `work` last waited for one.
  void await(const void* to, cudaStream_t work);
  // The stream for copies on a channel.
  cudaStream_t stream_of(program::Channel channel, cudaStream_t work) const;

 private:
  struct Begun {
    Event finished;
    std::vector<cudaStream_t> waited{};  // streams that have waited for the copy
  };

  Stream to_device_;
  Stream to_host_;
  Event reached_;  // on `work`: a copy may begin
  SpareEvents spare_;
  std::unordered_map<const void*, Begun> begun_;  // copies in progress, by destination address
};

}  // namespace snug::backends::cuda
