// How much of a batch each operation did, as backends note it, next to what the host knows of the
// batch: packed rows, a prefill and a token of decoding; and that other bounds, or another amount,
// are seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "program/ir/tensor_names.h"
#include "program/kinds/kind.h"
#include "runtime/execution/trace_check.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using backends::Trace;
using program::Extent;
using program::Kind;
using program::Program;
using program::ProgramName;
using Numbers = std::vector<int32_t>;

std::vector<std::string> extent_backend_names() {
#ifdef SNUG_TEST_CPU_BACKEND
  return {"reference", "cpu"};
#else
  return {SNUG_TEST_BACKEND};
#endif
}

// What a backend finds on its device by itself it queues for all that shapes allow.
bool reads_bounds_on_device(const std::string& backend, Kind kind) {
  const bool is_loss =
      kind == Kind::linear_cross_entropy || kind == Kind::linear_cross_entropy_train;
  if (is_loss) return backend == "reference";  // its expansion makes all logits
  return backend == "cuda";
}

void fill(Executor& executor, ProgramName program, std::string_view name, const Numbers& values) {
  executor.await_inputs(program);
  const backends::Buffer& buffer = executor.tensor(program, program::host_name(name));
  ASSERT_EQ(buffer.elements(), static_cast<int64_t>(values.size()));
  std::ranges::copy(values, buffer.as<int32_t>());
}

struct Ran {
  const Program& program;
  const program::BatchBounds& bounds;
  std::vector<Trace> traces;

  size_t differences() const { return runtime::differences({program, bounds}, traces).size(); }
  size_t count(const std::string& backend, Kind kind) const {
    if (reads_bounds_on_device(backend, kind)) return 0;
    return static_cast<size_t>(
        std::ranges::count_if(traces, [&](const Trace& trace) { return trace.kind == kind; }));
  }
};

Ran traced(Executor& executor, ProgramName name) {
  return {*executor.job().find(name), executor.bounds(name), executor.run_traced(name)};
}

// Every operation that names extents, and no other, did as much as is expected of its kind.
void expect_extents(const Ran& ran, const std::string& backend,
                    const std::map<Kind, Extent>& expected) {
  for (size_t i = 0; i < ran.traces.size(); ++i) {
    const Trace& trace = ran.traces[i];
    const program::OperationView view{ran.program, ran.program.operations[i]};
    SCOPED_TRACE(name_of(trace.kind));
    ASSERT_EQ(trace.extent.has_value(), program::traits_of(trace.kind).has_extent());
    if (!trace.extent) continue;
    EXPECT_EQ(trace.by_capacity, reads_bounds_on_device(backend, trace.kind));
    EXPECT_EQ(*trace.extent,
              trace.by_capacity ? program::capacity_of(view) : expected.at(trace.kind));
  }
  EXPECT_EQ(ran.differences(), 0U);
}

// Each of them changed in the trace alone.
void expect_other_amounts_seen(Ran ran) {
  for (Trace& trace : ran.traces) {
    if (!trace.extent) continue;
    const Trace before = trace;
    for (double Extent::*amount : {&Extent::rows, &Extent::keys, &Extent::pairs}) {
      (*trace.extent).*amount += 1;
      EXPECT_EQ(ran.differences(), 1U);
      trace = before;
    }
    trace.extent.reset();
    EXPECT_EQ(ran.differences(), 1U);
    trace = before;
  }
}

TEST(ExtentTraces, OfPackedRows) {
  for (const std::string& backend_name : extent_backend_names()) {
    SCOPED_TRACE(backend_name);
    plan::TrainingSpec spec = testing::spec_of({});
    spec.row_segments = 3;
    spec.evaluate = true;
    const auto backend = backends::open_backend(backend_name, {.threads = 2});
    const plan::Job job = plan::plan_training(spec, *backend);
    Executor executor(job, *backend);
    for (const ProgramName name : {ProgramName::micro_first, ProgramName::evaluate}) {
      fill(executor, name, program::kTargetsName, {1, 2, -1, 3, 4, 5, -1, -1});
      fill(executor, name, program::kQueryBoundsName, {0, 3, 3, 7, 8, 8});
      const Ran ran = traced(executor, name);
      const Extent attention{.rows = 7, .keys = 7, .pairs = 6 + 10, .mean_segment_tokens = 25. / 7};
      expect_extents(ran, backend_name,
                     {{Kind::attention, attention},
                      {Kind::attention_grad, attention},
                      {Kind::linear_cross_entropy, {.rows = 5}},
                      {Kind::linear_cross_entropy_train, {.rows = 5}}});
      expect_other_amounts_seen(ran);
      // The bounds that the host has now are not those that were run.
      fill(executor, name, program::kQueryBoundsName, {0, 3, 3, 6, 8, 8});
      const size_t attentions =
          ran.count(backend_name, Kind::attention) + ran.count(backend_name, Kind::attention_grad);
      EXPECT_EQ(ran.differences(), attentions);
      fill(executor, name, program::kTargetsName, {1, 2, -1, 3, 4, 5, 6, -1});
      EXPECT_EQ(ran.differences(), attentions +
                                       ran.count(backend_name, Kind::linear_cross_entropy) +
                                       ran.count(backend_name, Kind::linear_cross_entropy_train));
    }
  }
}

// What one pass over the cache is given, by the names of its tensors.
struct Pass {
  Numbers slots;
  Numbers query_bounds;
  Numbers key_bounds;
  Numbers pages;
};

void fill(Executor& executor, ProgramName program, const Pass& pass) {
  fill(executor, program, own_name(program, program::kSlotsName), pass.slots);
  fill(executor, program, own_name(program, program::kQueryBoundsName), pass.query_bounds);
  fill(executor, program, own_name(program, program::kKeyBoundsName), pass.key_bounds);
  fill(executor, program, own_name(program, program::kPagesName), pass.pages);
}

void expect_pass(Executor& executor, const std::string& backend, ProgramName name, const Pass& pass,
                 const Extent& attention) {
  SCOPED_TRACE(backend + " " + std::string(name_of(name)));
  fill(executor, name, pass);
  const Ran ran = traced(executor, name);
  expect_extents(ran, backend,
                 {{Kind::attention, attention}, {Kind::cache_write, {.rows = attention.rows}}});
  expect_other_amounts_seen(ran);
  // A cache with a token more.
  Pass longer = pass;
  longer.key_bounds[1] += 1;
  fill(executor, name, longer);
  EXPECT_EQ(ran.differences(), ran.count(backend, Kind::attention));
  longer.slots.back() = 40;
  fill(executor, name, longer);
  EXPECT_EQ(ran.differences(),
            ran.count(backend, Kind::attention) + ran.count(backend, Kind::cache_write));
}

TEST(ExtentTraces, OfPrefillAndDecode) {
  for (const std::string& backend_name : extent_backend_names()) {
    plan::InferenceSpec spec;
    spec.model = testing::tiny_model();
    spec.compute = program::DType::f32;
    spec.shape.sequences = 2;
    spec.shape.capacity = 48;
    spec.shape.prefill_tokens = 8;
    const auto backend = backends::open_backend(backend_name, {.threads = 2});
    const plan::Job job = plan::plan_inference(spec, *backend);
    Executor executor(job, *backend);
    // Five tokens after seven, and the first of another sequence.
    expect_pass(
        executor, backend_name, ProgramName::prefill,
        {.slots = {7, 8, 9, 10, 11, 64, -1, -1},
         .query_bounds = {0, 5, 5, 6},
         .key_bounds = {0, 12, 0, 1},
         .pages = {0, 1}},
        {.rows = 6, .keys = 13, .pairs = 8 + 9 + 10 + 11 + 12 + 1, .mean_segment_tokens = 61. / 6});
    expect_pass(executor, backend_name, ProgramName::decode,
                {.slots = {12, -1},
                 .query_bounds = {0, 1, 0, 0},
                 .key_bounds = {0, 13, 0, 0},
                 .pages = {0, -1}},
                {.rows = 1, .keys = 13, .pairs = 13, .mean_segment_tokens = 13});
  }
}

}  // namespace
}  // namespace snug::runtime
