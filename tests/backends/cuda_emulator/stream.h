// A stream of the emulated device. Of those that are alive every first does its work at the last
// moment that CUDA allows, when somebody waits for it, so that a host that goes on too early reads
// old bytes or overwrites what is still to be copied. Every second does it at the first moment, so
// that what should have waited for another stream reads what is not there yet; only at a wait for
// what was not reached it stops, until somebody waits for it. What a stream records for a graph it
// does not do at all. Thread-safe, except for recording.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "cuda_runtime_api.h"
#include "device_memory.h"

struct Work {
  std::function<void()> run;
  std::function<bool()> is_ready = {};  // empty: always; an eager stream waits for it
  cudaStream_t waits_for = nullptr;     // the stream that makes it ready; null: none
};

struct CudaStreamStandIn {
  std::mutex mutex;
  std::deque<Work> queued;
  bool is_eager = false;
  int device = 0;
  // The stream that records what this one is given: itself, or one that it waited for. Null: none.
  cudaStream_t recorder = nullptr;
  // Of a recorder: the calls, in order, to be made again with the stream that a graph is launched
  // on; and the other streams it records, with whether it has waited for all that they were given,
  // and which others among them have.
  std::vector<std::function<void(cudaStream_t launched_on)>> recorded;
  std::set<cudaStream_t> joined;
  bool is_awaited = true;
  std::set<cudaStream_t> awaited_by;
};

namespace snug::cuda_emulator {

// Does what is queued, in order, until `is_enough` or nothing is left.
template <typename F>
void finish_until(cudaStream_t stream, const F& is_enough) {
  const std::lock_guard lock(stream->mutex);
  const QueuedWork work;
  for (; !stream->queued.empty() && !is_enough(); stream->queued.pop_front())
    stream->queued.front().run();
}

inline void finish(cudaStream_t stream) {
  finish_until(stream, [] { return false; });
}

// Work for the null stream is done at once.
inline void submit(cudaStream_t stream, Work work) {
  if (stream == nullptr) return work.run();
  if (stream->recorder != nullptr) {
    const cudaStream_t recorder = stream->recorder;
    stream->is_awaited = stream == recorder;
    stream->awaited_by.clear();
    recorder->recorded.push_back(
        [=](cudaStream_t launched_on) { submit(stream == recorder ? launched_on : stream, work); });
    return;
  }
  {
    const std::lock_guard lock(stream->mutex);
    stream->queued.push_back(std::move(work));
  }
  if (stream->is_eager)
    finish_until(stream, [&] {
      const Work& next = stream->queued.front();
      return next.is_ready && !next.is_ready();
    });
}

// Does what a stream can do without waiting, after what it waits for can: at any time, by any
// thread. A stream that another thread is at is left to it.
inline void do_what_is_ready(cudaStream_t stream) {
  while (true) {
    cudaStream_t other = nullptr;
    {
      const std::unique_lock lock(stream->mutex, std::try_to_lock);
      if (!lock.owns_lock()) return;
      const QueuedWork work;
      for (; !stream->queued.empty(); stream->queued.pop_front()) {
        const Work& next = stream->queued.front();
        if (next.is_ready && !next.is_ready()) break;
        next.run();
      }
      if (stream->queued.empty()) return;
      other = stream->queued.front().waits_for;
    }
    if (other == nullptr) return;
    do_what_is_ready(other);
    const std::unique_lock lock(stream->mutex, std::try_to_lock);
    if (!lock.owns_lock() || stream->queued.empty()) return;
    const Work& next = stream->queued.front();  // Another thread may have done what was there.
    if (next.is_ready && !next.is_ready()) return;
  }
}

inline void submit(cudaStream_t stream, std::function<void()> run) {
  submit(stream, Work{std::move(run)});
}

}  // namespace snug::cuda_emulator
