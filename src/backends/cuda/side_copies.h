// Copies that run next to the kernels of a stream: each direction has a stream of its own, in which
// copies run in the order in which they are begun, so both directions of the link are busy at once.
// A wait is for one copy, named by the address that it writes, and each copy is awaited once, so
// that no wait is for what an earlier run began. Of one thread. Can be recorded for a
// graph, if all that is begun is awaited in it.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "backends/cuda/stream.h"
#include "program/operation.h"

namespace snug::backends::cuda {

class SideCopies {
 public:
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    int64_t bytes = 0;
  };

  SideCopies();
  SideCopies(const SideCopies&) = delete;
  SideCopies& operator=(const SideCopies&) = delete;
  ~SideCopies();

  // Copies once all that `work` was given is done; on the channel that computes, as the next thing
  // that `work` does. Host memory must be pinned. Returns the channel of the stream that copies.
  program::Channel begin(program::Channel channel, const Copy& copy, cudaStream_t work);
  // What `work` is given from here on waits for the copy to `to` that was begun last. Fails a CHECK
  // where none was since the last wait for one.
  void await(const void* to, cudaStream_t work);
  // The stream that copies on a channel.
  cudaStream_t stream_of(program::Channel channel, cudaStream_t work) const;

 private:
  Stream to_device_;
  Stream to_host_;
  struct Finished {
    cudaEvent_t event = nullptr;  // used again by the next copy to the same place
    bool is_awaited = true;
  };
  cudaEvent_t reached_ = nullptr;                       // on `work`: a copy may begin
  std::unordered_map<const void*, Finished> finished_;  // by what the copy writes
};

}  // namespace snug::backends::cuda
