// Runs the passes in order: from a forward program to one that a backend can run.
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

// What one pass did, for `snug explain` and for finding slow passes.
struct PassRecord {
  std::string program;
  std::string pass;
  double milliseconds = 0;
  size_t operations = 0;
  size_t tensors = 0;
};

// Called after each pass with the program that it made.
using AfterPass = std::function<void(const PassRecord&, const program::Program&)>;

// Options of a micro-batch's program.
struct MicroOptions {
  DifferentiateOptions gradients;
  RecomputeModes recompute = RecomputeMode::none;
  bool offload = false;  // moves the checkpoints that recompute keeps to the host
  bool is_last = true;   // the last of a step, after which gradients are summed over all ranks
};

class Pipeline {
 public:
  // `quantization`: how frozen weights are stored; nothing: as in the forward program. `streaming`:
  // what is placed in host memory.
  explicit Pipeline(const program::Target& target, bool verify = false,
                    std::optional<QuantizeOptions> quantization = {}, StreamOptions streaming = {})
      : target_(target),
        verify_(verify),
        quantization_(std::move(quantization)),
        streaming_(streaming) {}

  // Sets what is sharded over ranks, for all programs made from here on.
  void shard_over(Sharding sharding, const ShardingOptions& options) {
    sharding_ = std::move(sharding);
    sharding_options_ = options;
  }

  // Forward and backward pass of a micro-batch. If `update` is given, each of its optimizer
  // operations moves to after its gradient here, and `update` keeps the rest.
  program::Program micro(const program::Program& forward,
                         std::span<const program::TensorId> trainable, const MicroOptions& options,
                         program::Program* update = nullptr);
  // Programs without a backward pass, such as evaluate, decode, update and reference. `results`:
  // tensors that the host reads after a run; in those listed in `sums`, each rank holds a share
  // until they are summed.
  program::Program plain(const program::Program& program,
                         std::span<const program::Tensor> results = {},
                         std::span<const program::Tensor> sums = {});

  // A program without a backward pass and without sums over ranks.
  program::Program forward(const program::Program& program,
                           std::span<const program::Tensor> results, Gathers gathers);

  // Passes all programs made from here on to this function after each of their passes.
  void show_to(AfterPass after_pass) { after_pass_ = std::move(after_pass); }

  const std::vector<PassRecord>& records() const { return records_; }

 private:
  program::Program placed(const program::Program& program, const ShardRole& role,
                          std::span<const program::Tensor> results);
  // Runs one pass, times it, verifies its result if verification is on, and reports the result.
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
