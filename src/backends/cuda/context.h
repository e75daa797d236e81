// What every kind's function of the CUDA backend is given besides its operation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "backends/cuda/cublas_lt.h"
#include "backends/cuda/host_work.h"
#include "backends/cuda/needs/card.h"
#include "backends/cuda/segment_attention.h"
#include "backends/cuda/side_copies.h"
#include "backends/cuda/stream.h"

namespace snug::backends::cuda {

struct Device {
  Card card;
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int runtime_version = 0;
  int driver_version = 0;
};

// Takes the first device. Throws UserError where there is none, or no driver.
Device open_device();

// Whether an environment variable that says on or off is on, as it is by default. Throws UserError
// for anything else.
bool is_on(const char* variable);

struct CudaContext {
  explicit CudaContext(std::function<std::unique_ptr<Backend>()> make_host = {});
  // The plan for this shape, made once. Null, and a line on stderr, where cuDNN has none or it
  // needs more scratch than that. Requires cudnn.
  std::shared_ptr<const SegmentPlan> segment_plan(const SegmentAttention& shape,
                                                  int64_t scratch_bytes);

  // Says, once, that the library's version leaves an attention to own kernels.
  void note_empty_segments();

  Device device = open_device();
  Stream stream;
  SideCopies side_copies;
  HostWork host_work;
  CublasLt cublas_lt{device.name, device.card.multiprocessors};
  std::unique_ptr<Cudnn> cudnn;  // null: none is found, or SNUG_CUDNN=off

 private:
  std::map<SegmentAttention, std::shared_ptr<const SegmentPlan>> segment_plans_;
  bool noted_empty_segments_ = false;
};

}  // namespace snug::backends::cuda
