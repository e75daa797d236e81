// A stream of the device, and points on one; each is released with its object. Making one throws
// UserError where the device has no memory for it, and so does making an event.
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

// A point that nobody asks the time of.
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

// Events for what steps will begin, made when operations are prepared.
class SpareEvents {
 public:
  void make_one() { events_.emplace_back(); }
  // Fails a CHECK where none is left: an operation was not prepared.
  Event take();

 private:
  std::vector<Event> events_;
};

// What is called at points of a stream, where there is something to call.
struct PointCalls {
  // Lets the stream wait for what else belongs to a point.
  std::function<void()> before_mark{};
  // Throws where what was waited for ended without having been done.
  std::function<void()> after_wait{};
};

// Points of a stream: an event for each, which the device stamps when it gets there.
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
