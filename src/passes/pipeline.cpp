#include "passes/pipeline.h"

#include <chrono>

#include "base/error.h"
#include "passes/gradient/update_in_backward.h"
#include "passes/lowering/lower.h"
#include "passes/memory/host_copies.h"
#include "passes/memory/mark_constants.h"
#include "passes/memory/offload.h"
#include "passes/memory/schedule.h"
#include "passes/sharding/kept_gathers.h"
#include "passes/sharding/sum_shares.h"
#include "program/ir/program_name.h"
#include "program/verify/verify.h"

namespace snug::passes {

using program::Program;

// Passes that take their program by value have it moved into them: run() does not use its input
// afterwards.

Program Pipeline::micro(const Program& forward, std::span<const program::TensorId> trainable,
                        const MicroOptions& options, Program* update) {
  Program p = run("differentiate", forward, [&](const Program& in) {
    return differentiate(in, trainable, options.gradients);
  });
  p = run("recompute", p, [&](const Program& in) { return recompute(in, options.recompute); });
  p = run("schedule", p, [&](const Program&) { return schedule(std::move(p)); });
  if (options.offload)
    p = run("offload", p, [&](const Program& in) { return offload(in, target_); });
  if (update != nullptr) {
    // Each optimizer operation moves to after the last reader of its weight. Products that `lower`
    // would join are joined before, so that no optimizer operation separates them, and a job
    // computes the same bits in both forms.
    p = run("join", p, [&](const Program&) { return join_products(std::move(p), target_); });
    p = run("update_in_backward", p,
            [&](const Program& in) { return update_in_backward(in, *update); });
  }
  return placed(p, {.is_last_micro = options.is_last}, {});
}

Program Pipeline::plain(const Program& program, std::span<const program::Tensor> results,
                        std::span<const program::Tensor> sums) {
  return placed(program, {.sums = sums}, results);
}

Program Pipeline::forward(const Program& program, std::span<const program::Tensor> results,
                          Gathers gathers) {
  return placed(program, {.gathers = gathers}, results);
}

// Applies the passes that depend on how weights are stored, on the target, on the rank, and on
// where tensors lie, and adds the host's copies.
Program Pipeline::placed(const Program& program, const ShardRole& role,
                         std::span<const program::Tensor> results) {
  Program p = program;
  if (quantization_)
    p = run("quantize", p, [&](const Program& in) { return quantize(in, *quantization_); });
  p = run("lower", p, [&](const Program&) { return lower(std::move(p), target_); });
  if (sharding_options_.ranks() > 1) {
    p = run("shard", p, [&](const Program& in) {
      return shard(in, sharding_, sharding_options_, role, target_);
    });
    p = run("sum_shares", p,
            [&](const Program&) { return sum_shares(std::move(p), sharding_options_, target_); });
    if (role.gathers == Gathers::before)
      p = run("without_gathers", p, [&](const Program&) { return without_gathers(std::move(p)); });
    if (role.gathers == Gathers::alone)
      p = run("kept_gathers", p, [&](const Program&) { return kept_gathers(std::move(p)); });
  }
  if (streaming_.moves_any()) {
    StreamOptions options = streaming_;
    // `prepare` runs only once, so a window for copies ahead would not be worth its memory.
    if (p.name == name_of(program::ProgramName::prepare)) options.window_bytes = 0;
    p = run("stream", p, [&](const Program& in) { return stream(in, options, target_); });
  }
  p = run("host_copies", p, [&](const Program&) { return host_copies(std::move(p), results); });
  return run("mark_constants", p, [&](const Program&) { return mark_constants(std::move(p)); });
}

Program Pipeline::run(const char* name, const Program& input,
                      const std::function<Program(const Program&)>& pass) {
  const auto start = std::chrono::steady_clock::now();
  Program output = pass(input);
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  records_.push_back(
      {output.name, name, elapsed.count(), output.operations.size(), output.tensors.size()});
  if (verify_)
    for (const std::string& problem : program::verify(output))
      SNUG_CHECK(false, "after {} of {}: {}", name, output.name, problem);
  if (after_pass_) after_pass_(records_.back(), output);
  return output;
}

}  // namespace snug::passes
