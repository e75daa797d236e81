#include "cuda_runtime_api.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "algorithms.h"
#include "creations.h"
#include "device_memory.h"
#include "library_calls.h"
#include "refusals.h"
#include "stream.h"

struct CudaGraphStandIn {
  std::vector<std::function<void(cudaStream_t launched_on)>> calls;
};
// Each record is a moment of its own, which outlives the event while work for it is queued.
struct Moment {
  std::atomic<bool> is_reached = false;
  std::chrono::duration<double> time{};  // when it was
};
struct CudaEventStandIn {
  cudaStream_t stream = nullptr;       // of the last record
  cudaStream_t recorded_by = nullptr;  // where that was in a recording
  std::shared_ptr<Moment> last = std::make_shared<Moment>();
};

using snug::cuda_emulator::Creations;
using snug::cuda_emulator::DeviceAccess;

namespace {

std::mutex streams_mutex;
std::set<cudaStream_t> streams;

std::chrono::duration<double> device_time() {
  return std::chrono::steady_clock::now().time_since_epoch() +
         snug::cuda_emulator::extra_device_time;
}

thread_local int current_device = 0;

// Of the thread's device. They stay there: who destroys one does not free memory meanwhile.
void finish_all_streams() {
  std::vector<cudaStream_t> own;
  {
    const std::lock_guard lock(streams_mutex);
    for (const cudaStream_t stream : streams)
      if (stream->device == current_device) own.push_back(stream);
  }
  for (const cudaStream_t stream : own) snug::cuda_emulator::finish(stream);
}

thread_local cudaError_t last_error = cudaSuccess;

// Whether its recorder has waited for all that a stream was given, itself or through others.
bool reaches_recorder(cudaStream_t stream) {
  return stream->is_awaited || std::ranges::any_of(stream->awaited_by, reaches_recorder);
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "success" : "error";
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
// As CUDA has it, what an event has not reached counts as the last error until it is asked for.
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = snug::cuda_emulator::devices;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= snug::cuda_emulator::devices) return cudaErrorInvalidValue;
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = 4;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(snug::cuda_emulator::most_shared_bytes);
      return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "emulated");
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *total_bytes = size_t{1} << 32;
  *free_bytes = *total_bytes - snug::cuda_emulator::allocated_device_bytes();
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaMalloc(void** data, size_t bytes) {
  if (!Creations::all().make("device memory")) return cudaErrorMemoryAllocation;
  *data = snug::cuda_emulator::allocate_device_memory(bytes);
  return *data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

// Freeing waits for the device, as CUDA's does.
cudaError_t cudaFree(void* data) {
  finish_all_streams();
  snug::cuda_emulator::free_device_memory(data);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  if (!Creations::all().make("pinned memory")) return cudaErrorMemoryAllocation;
  constexpr size_t kAlignment = 256;
  *data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  return *data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) {
  finish_all_streams();
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  snug::cuda_emulator::submit(stream, [=] {
    const DeviceAccess access;
    std::memset(data, value, bytes);
  });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  snug::cuda_emulator::submit(stream, [=] {
    const DeviceAccess access;
    std::memmove(destination, source, bytes);
  });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (!Creations::all().make("stream")) return cudaErrorMemoryAllocation;
  *stream = new CudaStreamStandIn;
  (*stream)->device = current_device;
  const std::lock_guard lock(streams_mutex);
  const auto alive = std::ranges::count(streams, current_device, &CudaStreamStandIn::device);
  (*stream)->is_eager = alive % 2 == 1;
  streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    const std::lock_guard lock(streams_mutex);
    streams.erase(stream);
  }
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->recorder != nullptr) return cudaErrorStreamCaptureUnsupported;
  snug::cuda_emulator::finish(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream->recorder != nullptr) return cudaErrorStreamCaptureUnsupported;
  stream->recorder = stream;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (stream->recorder != stream) return cudaErrorStreamCaptureUnsupported;
  bool is_joined = true;
  std::vector<cudaStream_t> others;
  for (const cudaStream_t other : std::exchange(stream->joined, {})) {
    is_joined = is_joined && reaches_recorder(other);
    others.push_back(other);
  }
  for (const cudaStream_t other : others) {
    other->recorder = nullptr;
    other->awaited_by.clear();
  }
  stream->recorder = nullptr;
  *graph = new CudaGraphStandIn{std::exchange(stream->recorded, {})};
  return is_joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (!snug::cuda_emulator::load_kernel(kernel)) return cudaErrorMemoryAllocation;
  attributes->ptxVersion = 90;
  return snug::cuda_emulator::has_other_kernels ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  if (snug::cuda_emulator::refuses_graphs || !Creations::all().make("graph"))
    return cudaErrorMemoryAllocation;
  std::this_thread::sleep_for(snug::cuda_emulator::graph_time);
  ++snug::cuda_emulator::graphs;
  *executable = new CudaGraphStandIn(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return cudaGraphDestroy(executable);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  for (const auto& call : executable->calls) call(stream);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  if (!Creations::all().make("event")) return cudaErrorMemoryAllocation;
  *event = new CudaEventStandIn;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream->recorder != nullptr) {
    const cudaStream_t recorder = stream->recorder;
    event->stream = stream;
    event->recorded_by = recorder;
    recorder->recorded.push_back([=](cudaStream_t launched_on) {
      cudaEventRecord(event, stream == recorder ? launched_on : stream);
    });
    return cudaSuccess;
  }
  event->recorded_by = nullptr;
  event->stream = stream;
  event->last = std::make_shared<Moment>();
  snug::cuda_emulator::submit(stream, [moment = event->last] {
    moment->time = device_time();
    moment->is_reached = true;
  });
  return cudaSuccess;
}

// An event of a recording is only waited for in it; a stream that waits for one joins.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const cudaStream_t recorder = event->recorded_by;
  if (recorder != nullptr) {
    if (recorder->recorder != recorder) return cudaErrorStreamCaptureUnsupported;
    if (stream->recorder == nullptr) {
      stream->recorder = recorder;
      recorder->joined.insert(stream);
    }
    if (stream == recorder) {
      event->stream->is_awaited = true;
    } else {
      event->stream->awaited_by.insert(stream);
      stream->is_awaited = false;
      stream->awaited_by.clear();
    }
    recorder->recorded.push_back([=](cudaStream_t launched_on) {
      cudaStreamWaitEvent(stream == recorder ? launched_on : stream, event, 0);
    });
    return cudaSuccess;
  }
  if (stream->recorder != nullptr) return cudaErrorStreamCaptureUnsupported;
  if (event->stream == nullptr) return cudaSuccess;
  const auto is_reached = [moment = event->last] { return moment->is_reached.load(); };
  snug::cuda_emulator::submit(stream, Work{[other = event->stream, is_reached] {
                                             if (!is_reached())
                                               snug::cuda_emulator::finish_until(other, is_reached);
                                           },
                                           is_reached, event->stream});
  return cudaSuccess;
}

// The function reaches no memory of the device, as on a card.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  snug::cuda_emulator::submit(stream, [=] {
    snug::cuda_emulator::QueuedWork::close_pages();
    function(argument);
  });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const bool is_reached = event->stream == nullptr || event->last->is_reached;
  if (!is_reached) last_error = cudaErrorNotReady;
  return is_reached ? cudaSuccess : cudaErrorNotReady;
}

// As CUDA has it, there is nothing to wait for where nothing was recorded.
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->stream != nullptr)
    snug::cuda_emulator::finish_until(event->stream,
                                      [&] { return event->last->is_reached.load(); });
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const Moment& from = *begin->last;
  const Moment& to = *end->last;
  if (!from.is_reached || !to.is_reached) return cudaErrorInvalidValue;
  using Milliseconds = std::chrono::duration<float, std::milli>;
  *milliseconds = Milliseconds(to.time - from.time).count();
  return cudaSuccess;
}
