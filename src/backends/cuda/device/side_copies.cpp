#include "backends/cuda/device/side_copies.h"

#include <algorithm>

#include "base/error.h"

namespace snug::backends::cuda {

using program::Channel;

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

cudaStream_t SideCopies::begin(Channel channel, const Copy& copy, cudaStream_t work) {
  const cudaStream_t copies = stream_of(channel, work);
  if (copies != work) {
    CUDA_CHECK(cudaEventRecord(reached_.get(), work));
    CUDA_CHECK(cudaStreamWaitEvent(copies, reached_.get(), 0));
  }
  CUDA_CHECK(cudaMemcpyAsync(copy.to, copy.from, static_cast<size_t>(copy.bytes), cudaMemcpyDefault,
                             copies));
  auto found = begun_.find(copy.to);
  if (found == begun_.end()) found = begun_.emplace(copy.to, Begun{spare_.take()}).first;
  Begun& begun = found->second;
  CUDA_CHECK(cudaEventRecord(begun.finished.get(), copies));
  begun.waited.clear();
  return copies;
}

void SideCopies::await(const void* to, cudaStream_t work) {
  const auto found = begun_.find(to);
  SNUG_CHECK(found != begun_.end(), "a copy is awaited that was not begun");
  Begun& begun = found->second;
  // An event that was already waited for does not stand for a copy that has not begun yet.
  SNUG_CHECK(std::find(begun.waited.begin(), begun.waited.end(), work) == begun.waited.end(),
             "a copy is awaited again that was not begun again");
  CUDA_CHECK(cudaStreamWaitEvent(work, begun.finished.get(), 0));
  begun.waited.push_back(work);
}

}  // namespace snug::backends::cuda
