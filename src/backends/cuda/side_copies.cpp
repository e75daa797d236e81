#include "backends/cuda/side_copies.h"

#include "base/error.h"

namespace snug::backends::cuda {

using program::Channel;

SideCopies::SideCopies() {
  CUDA_CHECK(cudaEventCreateWithFlags(&reached_, cudaEventDisableTiming));
}

SideCopies::~SideCopies() {
  cudaEventDestroy(reached_);
  for (const auto& [to, finished] : finished_) cudaEventDestroy(finished.event);
}

cudaStream_t SideCopies::stream_of(Channel channel, cudaStream_t work) const {
  switch (channel) {
    case Channel::compute:
      return work;
    case Channel::host_to_device:
      return to_device_.get();
    case Channel::device_to_host:
      return to_host_.get();
    case Channel::interconnect:
    case Channel::storage:
    case Channel::host:
      break;
  }
  SNUG_CHECK(false, "a copy on channel {}", program::name_of(channel));
  return nullptr;
}

program::Channel SideCopies::begin(Channel channel, const Copy& copy, cudaStream_t work) {
  const cudaStream_t copies = stream_of(channel, work);
  if (copies != work) {
    CUDA_CHECK(cudaEventRecord(reached_, work));
    CUDA_CHECK(cudaStreamWaitEvent(copies, reached_, 0));
  }
  CUDA_CHECK(cudaMemcpyAsync(copy.to, copy.from, static_cast<size_t>(copy.bytes), cudaMemcpyDefault,
                             copies));
  Finished& finished = finished_[copy.to];
  if (finished.event == nullptr)
    CUDA_CHECK(cudaEventCreateWithFlags(&finished.event, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventRecord(finished.event, copies));
  finished.is_awaited = false;
  if (copies == work) return Channel::compute;
  return copies == to_device_.get() ? Channel::host_to_device : Channel::device_to_host;
}

void SideCopies::await(const void* to, cudaStream_t work) {
  const auto found = finished_.find(to);
  SNUG_CHECK(found != finished_.end() && !found->second.is_awaited,
             "a copy is awaited that was not begun");
  found->second.is_awaited = true;
  CUDA_CHECK(cudaStreamWaitEvent(work, found->second.event, 0));
}

}  // namespace snug::backends::cuda
