// Checkpoints of tiny runs, with any state in them.
#pragma once

#include <string>

#include "methods/update.h"
#include "program/ir/tensor_names.h"
#include "runtime/loading/random_weights.h"
#include "runtime/saving/checkpoint.h"
#include "tiny_run.h"

namespace snug::testing {

inline TinyOptions tiny(formats::Method method, program::DType compute = program::DType::bf16,
                        methods::OptimizerKind optimizer = methods::OptimizerKind::adamw) {
  TinyOptions options;
  options.method = method;
  options.compute = compute;
  options.optimizer = optimizer;
  return options;
}

inline runtime::CheckpointOptions options_for(const TinyRun& run,
                                              const std::filesystem::path& output_dir) {
  runtime::CheckpointOptions options;
  options.output_dir = output_dir;
  options.model.config = run.spec().model;
  if (run.spec().is_adapted())
    options.adapter = formats::LoraConfig{.r = run.spec().lora.r,
                                          .alpha = run.spec().lora.alpha,
                                          .dropout = 0,
                                          .use_rslora = false,
                                          .target_modules = run.spec().lora.target_modules,
                                          .base_model = "base"};
  return options;
}

inline runtime::TrainerState state_at(int64_t step) {
  runtime::TrainerState state;
  state.step = step;
  state.max_steps = 1 << 20;
  state.rows_consumed = 8 * step;
  state.rows_per_step = 8;
  state.seed = 42;
  state.train_seconds = 0.1 * static_cast<double>(step);
  state.identity.free["backend"] = "reference";
  return state;
}

// Clears a bit of the exponent of every float, so that any bits are a number.
inline void make_finite(const backends::Buffer& buffer, TinyRun& run) {
  const auto width = static_cast<size_t>(base::size_of(buffer.dtype));
  std::string bytes = run.bytes(buffer);
  if (base::is_float(buffer.dtype))
    for (size_t i = width - 1; i < bytes.size(); i += width)
      bytes[i] = static_cast<char>(bytes[i] & ~0x10);
  run.executor().backend().copy(buffer.data, bytes.data(), buffer.bytes());
}

// Random state of finite numbers, in which each weight is what `prepare` casts from its master, as
// training leaves it.
inline void fill_state(TinyRun& run, unsigned salt) {
  run.scribble(run.state_names(), salt);
  for (const std::string& name : run.state_names()) make_finite(run.executor().tensor(name), run);
  for (const program::Tensor& tensor : run.job().trainables) {
    const std::string master = program::master_name(tensor.name);
    const bool has_master = run.executor().has(master);
    runtime::fill_normal({run.executor().tensor(has_master ? master : tensor.name), tensor.name},
                         salt, 0.02F, run.executor());
  }
  run.executor().run(program::ProgramName::prepare);
}

}  // namespace snug::testing
