#include "backends/cuda/device/stream.h"

#include <utility>

#include "base/error.h"

namespace snug::backends::cuda {

Event::Event() {
  CUDA_CHECK_MEMORY("an event", cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}

Event::~Event() {
  if (event_ != nullptr) cudaEventDestroy(event_);
}

Event SpareEvents::take() {
  SNUG_CHECK(!events_.empty(), "a copy or a collective is begun that was not prepared");
  Event event = std::move(events_.back());
  events_.pop_back();
  return event;
}

CudaEvents::CudaEvents(size_t points, cudaStream_t stream, PointCalls calls)
    : stream_(stream), events_(points), calls_(std::move(calls)) {
  for (cudaEvent_t& event : events_) CUDA_CHECK_MEMORY("an event", cudaEventCreate(&event));
}

CudaEvents::~CudaEvents() {
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
}

void CudaEvents::mark(size_t index) {
  if (calls_.before_mark) calls_.before_mark();
  CUDA_CHECK(cudaEventRecord(events_[index], stream_));
}

bool CudaEvents::is_reached(size_t index) {
  const cudaError_t state = cudaEventQuery(events_[index]);
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // clears the result, which is not an error
    return false;
  }
  CUDA_CHECK(state);
  return true;
}

void CudaEvents::wait(size_t index) {
  CUDA_CHECK(cudaEventSynchronize(events_[index]));
  if (calls_.after_wait) calls_.after_wait();
}

double CudaEvents::seconds(size_t begin, size_t end) {
  constexpr double kMillisecond = 1e-3;
  float milliseconds = 0;
  wait(end);
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events_[begin], events_[end]));
  return static_cast<double>(milliseconds) * kMillisecond;
}

}  // namespace snug::backends::cuda
