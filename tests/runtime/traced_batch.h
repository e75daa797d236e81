// Batches for tests of traces: the rows of a program filled in, and their shapes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "models/forward/key_groups.h"
#include "plan/job/job.h"
#include "program/ir/tensor_names.h"
#include "runtime/execution/executor.h"
#include "runtime/storage/perform.h"
#ifdef SNUG_TEST_CPU_BACKEND
#include "backends/cpu/isa.h"
#endif

namespace snug::testing {

// Rows of several documents, short ones and long ones: more tokens than a chunk of loss has rows,
// and segments of all sizes that an attention treats differently.
inline void pack_rows(plan::TrainingSpec& spec) {
  spec.row_tokens = 160;
  spec.row_segments = 5;
}

// The cpu backend on a processor that does not multiply bf16 trains in f32.
inline bool lacks_bf16([[maybe_unused]] const std::string& backend) {
#ifdef SNUG_TEST_CPU_BACKEND
  return backend == "cpu" && !backends::cpu::has_bf16_products(backends::cpu::detect_isa());
#else
  return false;
#endif
}

// Tokens of a batch that carry loss.
inline int64_t trained_of(int64_t tokens) { return tokens <= 8 ? 3 : tokens - 9; }

inline program::ProgramName typed_name(const program::Program& program) {
  return base::from_word<program::ProgramName>(program.name).value();
}

// Segments of 2, 3, 20, ... tokens, of which the last one takes the rest; of a stream of so many.
inline void fill_bounds(const backends::Buffer& bounds, int64_t tokens) {
  const int64_t segments = bounds.elements() / 2;
  int32_t begin = 0;
  for (int64_t i = 0; i < segments; ++i) {
    constexpr int32_t kLengths[] = {2, 3, 20, 70};
    const auto end = i + 1 == segments ? static_cast<int32_t>(tokens) : begin + kLengths[i % 4];
    bounds.as<int32_t>()[2 * i] = begin;
    bounds.as<int32_t>()[2 * i + 1] = end;
    begin = end;
  }
}

// Segment i of n has row i, the last one also the rows after it, up to `rows`.
inline void fill_rows(const backends::Buffer& bounds, int64_t rows) {
  const auto segments = static_cast<int32_t>(bounds.elements() / 2);
  for (int32_t i = 0; i < segments; ++i) {
    bounds.as<int32_t>()[2 * i] = i;
    bounds.as<int32_t>()[2 * i + 1] =
        i + 1 == segments ? std::max(static_cast<int32_t>(rows), i + 1) : i + 1;
  }
}

// Of a pass over caches: every sequence has tokens, and all have the same pages, the first ones of
// each pool; of what an encoder left there each sequence sees a token.
inline void fill_pass(const program::Program& program, runtime::Executor& executor) {
  const program::ProgramName name = typed_name(program);
  for (const models::KeyPool& pool : executor.job().key_pools) {
    const auto host_of = [&](std::string_view tensor) -> const backends::Buffer* {
      const std::string host = program::host_name(program::own_name(name, tensor));
      return program.find(host) == program::kNone ? nullptr : &executor.tensor(name, host);
    };
    const backends::Buffer& pages = *host_of(models::group_name(pool.group, program::kPagesName));
    const int64_t of_segment = pages.shape[1];
    for (int64_t i = 0; i < pages.elements(); ++i)
      pages.as<int32_t>()[i] = static_cast<int32_t>(i % of_segment % pool.pages);
    const int64_t room = std::min(of_segment, pool.pages) * plan::InferenceShape{}.page_tokens;
    int64_t tokens = 0;  // that the pass has of this stream
    if (const auto* slots = host_of(models::group_name(pool.group, program::kSlotsName))) {
      tokens = slots->elements();
      for (int64_t i = 0; i < tokens; ++i)
        slots->as<int32_t>()[i] = i < room ? static_cast<int32_t>(i) : -1;
    }
    fill_rows(*host_of(models::group_name(pool.group, program::kKeyBoundsName)),
              std::min(tokens, room));
    const std::string queries = program::stream_name(pool.group.stream, program::kQueryBoundsName);
    if (const auto* bounds = host_of(queries)) fill_rows(*bounds, tokens);
  }
}

// Makes what `load` makes of bounds: it has no files here.
inline void put_bounds(runtime::Executor& executor) {
  const program::Program* load = executor.job().find(program::ProgramName::load);
  if (load == nullptr) return;
  const runtime::Sources none;
  runtime::Performance performance(program::ProgramName::load, none, executor);
  for (size_t i = 0; i < load->operations.size(); ++i)
    if (load->operations[i].kind() == program::Kind::put_bounds) performance.operation(i);
}

// A batch whose row is one segment, or as many as it may have.
inline void fill_batch(const program::Program& program, runtime::Executor& executor) {
  put_bounds(executor);
  executor.await_inputs(typed_name(program));
  if (program.find("host.targets") == program::kNone) return fill_pass(program, executor);
  const backends::Buffer& targets = executor.tensor(typed_name(program), "host.targets");
  const int64_t tokens = targets.elements();
  for (int64_t i = 0; i < tokens; ++i) targets.as<int32_t>()[i] = i < trained_of(tokens) ? 1 : -1;
  fill_bounds(executor.tensor(typed_name(program), "host.query_bounds"), tokens);
  if (program.find("host.encoder.tokens") == program::kNone) return;
  fill_bounds(executor.tensor(typed_name(program), "host.encoder.query_bounds"),
              executor.tensor(typed_name(program), "host.encoder.tokens").elements());
}

}  // namespace snug::testing
