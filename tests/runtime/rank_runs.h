// Tiny runs of several ranks, which are threads, and what each holds against a run of one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "comm/local.h"
#include "comm/ranks.h"
#include "runtime/loading/random_weights.h"
#include "runtime/storage/tensor_part.h"
#include "tiny_checkpoint.h"
#include "tiny_run.h"

namespace snug::testing {

// Large enough that parts of one weight lie on several ranks, those with nested scales too, and
// that a tensor has several pieces of checksums.
inline models::ModelConfig rank_model() {
  models::ModelConfig config = tiny_model();
  config.hidden_size = 192;
  config.head_dim = 64;
  config.intermediate_size = 320;
  config.num_layers = 1;
  config.vocab_size = 3001;
  return config;
}

// Everything is sharded that may be.
inline passes::ShardingOptions full_shard(int ranks) {
  return {.shards = ranks,
          .weights = passes::WeightSharding::layer_by_layer,
          .gradients = passes::GradientSharding::scattered,
          .threshold_elements = 1};
}

// Every rank has all weights, which are padded, and a part of the optimizer's state.
inline passes::ShardingOptions shard_state(int ranks) {
  return {.shards = ranks,
          .weights = passes::WeightSharding::whole,
          .gradients = passes::GradientSharding::scattered,
          .threshold_elements = 1};
}

// Calls `run` as each rank; what each threw, empty where it did not.
inline std::vector<std::string> on_ranks(TinyOptions options, const passes::ShardingOptions& ranks,
                                         const std::function<void(TinyRun&, int)>& run) {
  options.ranks = ranks;
  options.threads = 1;
  return comm::errors_of_ranks(ranks.shards, {}, [&](comm::Communicator& communicator) {
    const comm::Mesh mesh{.all = &communicator, .shards = &communicator};
    TinyOptions own = options;
    if (ranks.shards > 1) own.mesh = &mesh;
    TinyRun tiny(own);
    run(tiny, communicator.rank());
  });
}

inline void expect_no_errors(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

// Calls f(tensor, buffer) for what lasts through a run among a program's operands.
template <typename F>
void for_each_lasting(const TinyRun& run, TinyRun& memory, program::ProgramName name, F&& f) {
  const program::Program& program = *run.job().find(name);
  for (size_t id = 0; id < program.tensors.size(); ++id)
    if (program.tensors[id].lifetime == program::Lifetime::run)
      f(program.tensors[id], memory.executor().tensor(name, static_cast<program::TensorId>(id)));
}

// The byte that padding is made of: of codes of the signed dynamic map, of which bitsandbytes' is
// the one, 127 stands for 0.
inline char zero_byte(const program::Tensor& tensor) {
  return tensor.dtype == base::DType::u8 && tensor.name.starts_with("moment1.") ? '\x7f' : '\0';
}

// Holds a rank's part of a tensor against that of one rank; what lies beyond its end is 0.
inline void expect_part_of(TinyRun& one, TinyRun& rank, const program::Tensor& tensor,
                           const backends::Buffer& buffer) {
  const backends::Buffer held = runtime::held_part(tensor, buffer);
  const std::string whole = one.bytes(tensor.name);
  const auto width = static_cast<size_t>(base::size_of(tensor.dtype));
  const size_t first = std::min(whole.size(), static_cast<size_t>(held.first) * width);
  EXPECT_TRUE(rank.bytes(held) == whole.substr(first, static_cast<size_t>(held.bytes())))
      << tensor.name << " from " << held.first;
  const std::string rest = rank.bytes(runtime::padding(tensor, buffer));
  EXPECT_EQ(rest.find_first_not_of(zero_byte(tensor)), std::string::npos)
      << "padding of " << tensor.name;
}

// The same of a program's tensors.
inline void expect_parts_of(TinyRun& one, TinyRun& rank, program::ProgramName name) {
  for_each_lasting(rank, rank, name,
                   [&](const program::Tensor& tensor, const backends::Buffer& buffer) {
                     expect_part_of(one, rank, tensor, buffer);
                   });
}

// Gives what a checkpoint holds values of its own, the same whatever the number of ranks.
inline void fill_saved(TinyRun& run, int64_t salt) {
  for (const auto name : {program::ProgramName::save, program::ProgramName::save_state})
    for_each_lasting(
        run, run, name, [&](const program::Tensor& tensor, const backends::Buffer& buffer) {
          const backends::Buffer held = runtime::held_part(tensor, buffer);
          runtime::set_zero(run.job(), tensor, buffer, run.executor().backend());
          const bool is_scale = tensor.name.starts_with("scale");
          if (base::is_float(tensor.dtype) && !is_scale)
            return run.executor().backend().fill(
                held, {program::FillForm::normal, runtime::tensor_key(tensor.name, salt), 0.02F},
                held.first);
          // Codes, and their scales, of which a part may begin anywhere.
          const auto pattern = [&](int64_t i) { return ((i + held.first) * 31 + salt) % 251; };
          std::string bytes(static_cast<size_t>(held.bytes()), '\0');
          for (int64_t i = 0; i < held.elements(); ++i) {
            const auto scale = static_cast<float>(pattern(i));
            if (is_scale)
              std::memcpy(bytes.data() + i * int64_t{sizeof scale}, &scale, sizeof scale);
            else
              bytes[static_cast<size_t>(i)] = static_cast<char>(pattern(i));
          }
          run.executor().backend().copy(held.data, bytes.data(), held.bytes());
        });
  run.executor().backend().synchronise();
}

}  // namespace snug::testing
