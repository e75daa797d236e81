// What every kind's function of the CUDA backend is given besides its operation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "backends/cuda/attention/segment_attention.h"
#include "backends/cuda/device/host_work.h"
#include "backends/cuda/device/side_copies.h"
#include "backends/cuda/device/stream.h"
#include "backends/cuda/library/cublas_lt.h"
#include "backends/cuda/needs/card.h"
#include "backends/cuda/transfer/card_collectives.h"

namespace snug::backends::cuda {

struct Device {
  // Makes it the one that the calling thread's next calls are of. Each thread begins with the
  // first.
  void use() const;

  Card card;
  int index = 0;     // among those that the process sees
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int runtime_version = 0;
  int driver_version = 0;
};

// Takes the device of that number, and the first where the process sees but one, as it does where a
// launcher has assigned them. Throws UserError where there is none, or no driver.
Device open_device(int number = 0);

// Whether an environment variable that says on or off is on, as it is by default. Throws UserError
// for anything else.
bool is_on(const char* variable);

struct CudaContext {
  // Connects the ranks of the options' mesh.
  explicit CudaContext(const BackendOptions& options = {});
  // What the library answers for a shape: a plan, or why it has none for so much scratch.
  struct SegmentAnswer {
    std::shared_ptr<const SegmentPlan> plan;
    std::string refusal;
    bool is_reported = false;
    bool is_loaded = false;  // it has run
  };
  // The answer for this shape, asked for once. Requires cudnn.
  SegmentAnswer& segment_plan(const SegmentAttention& shape, int64_t scratch_bytes);

  // While a job is planned: whether the library has a plan. If not, says once that own kernels are
  // planned instead.
  bool accepts_segments(const SegmentAttention& shape, int64_t scratch_bytes);

  // What is done on this stream, which is one of the backend's.
  program::Channel channel_of(cudaStream_t queued_on) const;

  // Says, once, that the library's version leaves an attention to own kernels.
  void note_empty_segments();

  Device device;
  Stream stream;
  SideCopies side_copies;
  CardCollectives collectives;
  HostWork host_work;
  CublasLt cublas_lt{device.name, device.card.multiprocessors};
  std::unique_ptr<Cudnn> cudnn;  // null: none is found, or SNUG_CUDNN=off

 private:
  std::map<SegmentAttention, SegmentAnswer> segment_plans_;
  bool noted_empty_segments_ = false;
};

}  // namespace snug::backends::cuda
