// A timeline of the stream: an event a point, which the device stamps when it gets there.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "backends/cuda/cuda_check.h"
#include "backends/timeline.h"

namespace snug::backends::cuda {

class DeviceTimeline final : public Timeline {
 public:
  // The stream must outlive the timeline. `check` is called after each wait: where what was waited
  // for ended without having been done, it throws.
  DeviceTimeline(size_t points, cudaStream_t stream, std::function<void()> check = {});
  DeviceTimeline(const DeviceTimeline&) = delete;
  DeviceTimeline& operator=(const DeviceTimeline&) = delete;
  ~DeviceTimeline() override;

  void mark(size_t index) override;
  bool is_reached(size_t index) override;
  void wait(size_t index) override;
  double seconds(size_t begin, size_t end) override;

 private:
  cudaStream_t stream_;
  std::vector<cudaEvent_t> events_;
  std::function<void()> check_;
};

}  // namespace snug::backends::cuda
