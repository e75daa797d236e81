// The CPU backend: oneDNN for matrix products, Snug's own vector kernels for the rest, OpenMP
// threads. run() is synchronous. Device and host are two budgets of the same memory.
#pragma once

#include <memory>
#include <string>

#include "backends/backend.h"
#include "backends/cpu/context.h"
#include "backends/host_collectives.h"

namespace snug::backends::cpu {

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const BackendOptions& options);

  std::string name() const override {
    return std::string(base::word_of(formats::BackendName::cpu));
  }
  std::string library_versions() const override;
  int64_t capacity_bytes(program::Space space) const override;
  int64_t alignment_bytes() const override { return 64; }
  bool runs(const program::OperationView& view) const override;
  program::Workspace workspace(const program::OperationView& view) const override;
  program::Attributes decide(const program::OperationView& view) const override;

  std::unique_ptr<Arena> allocate(program::Space space, int64_t bytes) override;
  std::unique_ptr<Prepared> prepare(const program::OperationView& view) override;
  void run(const Invocation& invocation) override;
  void copy(void* destination, const void* source, int64_t bytes) override;
  void fill(const Buffer& tensor, const RandomValues& values, int64_t first) override;
  // Runs on the calling thread.
  void quantize_nf4(const Buffer& values, uint8_t* codes, float* absmax) override;
  int shard_rank() const override { return collectives_.shard_rank(); }
  void synchronise() override {}

 private:
  HostCollectives collectives_;
  CpuContext context_;
  int64_t device_budget_bytes_ = 0;  // 0: all of the machine's memory
  int64_t node_ranks_ = 1;           // the number of ranks that share this machine's memory
};

}  // namespace snug::backends::cpu
