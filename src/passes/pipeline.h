// The passes, in order: from a forward program to one a backend can run.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "passes/gradient/differentiate.h"
#include "passes/gradient/recompute.h"
#include "passes/lowering/quantize.h"
#include "passes/memory/stream.h"
#include "passes/sharding/shard.h"
#include "program/ir/program.h"

namespace snug::passes {

// What a pass did, for `snug explain` and for finding the slow one.
struct PassRecord {
  std::string program;
  std::string pass;
  double milliseconds = 0;
  size_t operations = 0;
  size_t tensors = 0;
};

// Called after each pass, with what it made.
using AfterPass = std::function<void(const PassRecord&, const program::Program&)>;

// What is chosen for a micro-batch next to its forward program.
struct MicroOptions {
  DifferentiateOptions gradients;
  RecomputeModes recompute = RecomputeMode::none;
  bool offload = false;  // what recompute keeps as checkpoints
  bool is_last = true;   // of a step: gradients become those of all ranks
};

class Pipeline {
 public:
  // `quantization`: how frozen weights are stored; nothing: as the forward program has them.
  // `streaming`: what lies in host memory.
  explicit Pipeline(const program::Target& target, bool verify = false,
                    std::optional<QuantizeOptions> quantization = {}, StreamOptions streaming = {})
      : target_(target),
        verify_(verify),
        quantization_(std::move(quantization)),
        streaming_(streaming) {}

  // Sets what is sharded over ranks in the programs that are made from here on.
  void shard_over(Sharding sharding, const ShardingOptions& options) {
    sharding_ = std::move(sharding);
    sharding_options_ = options;
  }

  // Forward and backward of a micro-batch. With `update`, each optimizer operation of it moves
  // after its gradient here, and what stays is left in it.
  program::Program micro(const program::Program& forward,
                         std::span<const program::TensorId> trainable, const MicroOptions& options,
                         program::Program* update = nullptr);
  // Programs without a backward pass: evaluate, prefill, decode, update, prepare. `results`: what
  // the host reads after a run; those in `sums` hold each rank's share until they are summed.
  program::Program plain(const program::Program& program,
                         std::span<const program::Tensor> results = {},
                         std::span<const program::Tensor> sums = {});

  // Shows programs that are made from here on after each of their passes.
  void show_to(AfterPass after_pass) { after_pass_ = std::move(after_pass); }

  const std::vector<PassRecord>& records() const { return records_; }

 private:
  program::Program placed(const program::Program& program, const ShardRole& role,
                          std::span<const program::Tensor> results);
  // Runs, times and, under the switch, verifies one pass, and shows what it made.
  program::Program run(const char* name, const program::Program& input,
                       const std::function<program::Program(const program::Program&)>& pass);

  const program::Target& target_;
  bool verify_;
  std::optional<QuantizeOptions> quantization_;
  StreamOptions streaming_;
  Sharding sharding_;
  ShardingOptions sharding_options_;
  std::vector<PassRecord> records_;
  AfterPass after_pass_;
};

}  // namespace snug::passes
