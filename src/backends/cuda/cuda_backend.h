// The CUDA backend: cuBLASLt for matrix products and Snug's own kernels for the rest, on the rank's
// device and on one stream. Everything except copy() and synchronise() is asynchronous;
// docs/cuda.md describes the design.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backends/backend.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/device/launch_count.h"

namespace snug::backends::cuda {

// The number of devices that this process sees.
int count_devices();

class CudaBackend : public Backend {
 public:
  // Throws UserError without a device or cuBLASLt, and for several ranks also without NCCL; all of
  // these are initialised here.
  explicit CudaBackend(const BackendOptions& options);
  ~CudaBackend() override;

  std::string name() const override {
    return std::string(base::word_of(formats::BackendName::cuda));
  }
  std::string library_versions() const override;
  int64_t capacity_bytes(program::Space space) const override;
  // The memory outside of the arenas is what is in use on the device and was not allocated here.
  std::optional<program::DeviceFacts> device() const override;
  bool host_reaches_device() const override { return false; }
  int64_t alignment_bytes() const override { return kArenaAlignment; }
  bool runs(const program::OperationView& view) const override;
  program::Workspace workspace(const program::OperationView& view) const override;
  program::Attributes decide(const program::OperationView& view) const override;
  int32_t launches(const program::OperationView& view) const override;
  size_t launched_together(const program::Program& program, size_t first) const override;

  std::unique_ptr<Arena> allocate(program::Space space, int64_t bytes) override;
  std::unique_ptr<Prepared> prepare(const program::OperationView& view) override;
  // Times matrix products, unless the options or the environment (SNUG_CUDA_TIMING=off) forbid it,
  // and calls libraries once for each of their operations.
  void tune(const Invocation& invocation) override;
  // Loads Snug's own kernels.
  void load(std::span<const Invocation> invocations) override;
  Choices choices() const override;
  std::string take_choices(std::string_view text, const std::string& file) override;
  bool takes_extent(const program::OperationView& view) const override;
  void run(const Invocation& invocation) override;
  // Runs joined optimizer steps in one launch.
  void run_list(std::span<const Invocation> invocations) override;
  // Compares the memory that graphs will need with what the GPU has left besides the arenas, which
  // is at least what plans reserve (kLateBytes) unless other programs have taken it.
  void expect_recordings(int64_t launches) override;
  // Records a CUDA graph; null where the environment has SNUG_CUDA_GRAPHS=off.
  std::unique_ptr<Recording> record(const std::function<void()>& operations) override;
  void copy(void* destination, const void* source, int64_t bytes) override;
  void queue_copy(void* destination, const void* source, int64_t bytes) override;
  void fill(const Buffer& tensor, const RandomValues& values, int64_t first) override;
  void quantize_nf4(const Buffer& values, uint8_t* codes, float* absmax) override;
  int shard_rank() const override;
  void synchronise() override;
  std::unique_ptr<DeviceEvents> events(size_t points) override;

 private:
  // Queues the operations of one launch: the first of a list and those joined to it.
  void queue(std::span<const Invocation> together);
  void note_launches(const Invocation& invocation, const LaunchCount& before) const;
  // The kernels' stream, after it was made to wait for everything that the host does in parallel.
  cudaStream_t joined_stream();

  std::unique_ptr<CudaContext> context_;
  std::optional<ByteRanges> recorded_;  // memory ranges of what is being recorded
  int64_t device_budget_bytes_ = 0;     // 0: all free memory of the device
  bool records_ = true;
};

}  // namespace snug::backends::cuda
