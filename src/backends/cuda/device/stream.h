// A stream of the device, and events on it; each is released with its object. Creating either
// throws UserError where the device has no memory for it.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "backends/cuda/device/cuda_check.h"
#include "backends/device_events.h"

namespace snug::backends::cuda {

class Stream {
 public:
  Stream() {
    CUDA_CHECK_MEMORY("a stream", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// An event without timing.
class Event {
 public:
  Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event();
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Events for work that steps will begin, created when operations are prepared.
class SpareEvents {
 public:
  void make_one() { events_.emplace_back(); }
  // Fails a CHECK where none is left, since an operation was not prepared.
  Event take();

 private:
  std::vector<Event> events_;
};

// Functions to call at points of a stream, where there are any.
struct PointCalls {
  // Makes the stream wait for other work that belongs to the point.
  std::function<void()> before_mark{};
  // Throws if the work that was waited for failed.
  std::function<void()> after_wait{};
};

// Points of a stream: one event for each, which the device stamps when it reaches it.
class CudaEvents final : public DeviceEvents {
 public:
  // The stream must outlive the events.
  CudaEvents(size_t points, cudaStream_t stream, PointCalls calls = {});
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;
  ~CudaEvents() override;

  void mark(size_t index) override;
  bool is_reached(size_t index) override;
  void wait(size_t index) override;
  double seconds(size_t begin, size_t end) override;

 private:
  cudaStream_t stream_;
  std::vector<cudaEvent_t> events_;
  PointCalls calls_;
};

}  // namespace snug::backends::cuda
