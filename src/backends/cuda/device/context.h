// What every kind's functions of the CUDA backend receive in addition to the operation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/attention/library_checks.h"
#include "backends/cuda/attention/segment_attention.h"
#include "backends/cuda/device/block_counters.h"
#include "backends/cuda/device/host_work.h"
#include "backends/cuda/device/side_copies.h"
#include "backends/cuda/device/stream.h"
#include "backends/cuda/library/cublas_lt.h"
#include "backends/cuda/needs/card.h"
#include "backends/cuda/transfer/card_collectives.h"

namespace snug::backends::cuda {

struct Device {
  // Makes it the current device of the calling thread. Each thread begins with the first device.
  void use() const;

  Card card;
  int index = 0;     // the number among the devices that the process sees
  std::string name;  // for example "NVIDIA H100 80GB HBM3"
  int runtime_version = 0;
  int driver_version = 0;
};

// Opens the device with that number; or the first one where the process sees only one, as when a
// launcher has assigned devices. Throws UserError where there is none, or no driver.
Device open_device(int number = 0);

// Whether an environment variable with the values on and off is on, which is the default. Throws
// UserError for any other value.
bool is_on(const char* variable);

// The library's answer for a shape: a plan, or why it has none with this much scratch.
struct SegmentAnswer {
  std::shared_ptr<const SegmentPlan> plan;
  std::string refusal;
  bool is_loaded = false;  // the plan has run once
};

struct CudaContext {
  // Connects the ranks of the options' mesh.
  explicit CudaContext(const BackendOptions& options = {});
  // The answer for this shape with this much scratch; the library is asked only once. Requires
  // cudnn.
  SegmentAnswer& segment_plan(const SegmentAttention& shape, int64_t scratch_bytes);

  // The channel of this stream, which must be one of the backend's.
  program::Channel channel_of(cudaStream_t queued_on) const;

  Device device;
  Stream stream;
  BlockCounters block_counters{stream.get()};  // of the kernels in that stream
  SideCopies side_copies;
  CardCollectives collectives;
  HostWork host_work;
  CublasLt cublas_lt{device.name, device.card.multiprocessors};
  std::unique_ptr<Cudnn> cudnn;  // null: not found, or SNUG_CUDNN=off
  // The versions of this GPU and its libraries, as logs and files of measurements have them.
  std::string library_versions() const;

  // What was found about the library's attention (attention/library_check.h): kept answers, and
  // those for the calls of an operation, and whether each of its segments has tokens.
  LibraryChecks library_checks;
  std::map<std::pair<std::vector<SegmentAttention>, bool>, LibraryAnswer> checked_segments;

 private:
  std::map<std::pair<SegmentAttention, int64_t>, SegmentAnswer> segment_plans_;  // by scratch too
};

}  // namespace snug::backends::cuda
