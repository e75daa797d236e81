// The reference backend: it defines the meaning of every kind readably, and is the oracle for all
// other backends.
//
// One thread, synchronous. An operation with an f64 tensor is computed in double, any other in
// float; f64, f32, bf16 and f16 tensors are read and written element by element in any mix and with
// any strides. Every kind runs; fused ones are loops over their expansion.
#pragma once

#include <memory>
#include <string>

#include "backends/backend.h"
#include "backends/host_collectives.h"

namespace snug::backends::reference {

class ReferenceBackend : public Backend {
 public:
  explicit ReferenceBackend(const BackendOptions& options)
      : device_memory_bytes_(options.device_memory_bytes), collectives_(options.mesh) {}

  std::string name() const override {
    return std::string(base::word_of(formats::BackendName::reference));
  }
  std::string library_versions() const override { return "none, 1 thread"; }
  int64_t capacity_bytes(program::Space space) const override;
  int64_t alignment_bytes() const override { return 64; }
  bool runs(const program::OperationView& view) const override;
  program::Workspace workspace(const program::OperationView& view) const override;
  // There is nothing to decide, since there is only one way to do an operation here. Decisions in
  // the attributes are reset.
  program::Attributes decide(const program::OperationView& view) const override;

  std::unique_ptr<Arena> allocate(program::Space space, int64_t bytes) override;
  // Fails a CHECK for operations that it does not run, for joined operations, and for decisions of
  // another target.
  std::unique_ptr<Prepared> prepare(const program::OperationView& view) override;
  void run(const Invocation& invocation) override;
  void copy(void* destination, const void* source, int64_t bytes) override;
  void fill(const Buffer& tensor, const RandomValues& values, int64_t first) override;
  void quantize_nf4(const Buffer& values, uint8_t* codes, float* absmax) override;
  int shard_rank() const override { return collectives_.shard_rank(); }
  void synchronise() override {}

 private:
  int64_t device_memory_bytes_;
  HostCollectives collectives_;
};

}  // namespace snug::backends::reference
