// A stream of the emulated device. It does its work at the last moment that CUDA allows, when
// somebody waits for it, so that a host that goes on too early reads old bytes or overwrites what
// is still to be copied. What it records for a graph it does not do at all. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda_runtime_api.h"

struct CudaStreamStandIn {
  std::mutex mutex;
  std::deque<std::function<void()>> queued;
  bool records = false;
  std::vector<std::function<void()>> recorded;
};

namespace snug::cuda_emulator {

// Work for the null stream is done at once.
inline void submit(cudaStream_t stream, std::function<void()> work) {
  if (stream == nullptr) return work();
  const std::lock_guard lock(stream->mutex);
  if (stream->records)
    stream->recorded.push_back(std::move(work));
  else
    stream->queued.push_back(std::move(work));
}

// Does what is queued, in order, until `is_enough` or nothing is left.
template <typename F>
void finish_until(cudaStream_t stream, const F& is_enough) {
  const std::lock_guard lock(stream->mutex);
  for (; !stream->queued.empty() && !is_enough(); stream->queued.pop_front())
    stream->queued.front()();
}

inline void finish(cudaStream_t stream) {
  finish_until(stream, [] { return false; });
}

}  // namespace snug::cuda_emulator
