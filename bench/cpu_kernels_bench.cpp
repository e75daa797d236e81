// How fast the CPU backend's own kernels are: GB/s of operands moved next to what memcpy reaches,
// and GFLOP/s of attention, counting only pairs of queries and keys that see each other, and of the
// gated delta rule, counting the products that its plan does, next to those of a product in fp32.
// Arguments: threads.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <string>

#include "prepared_operation.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/attention/rope.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/silu_mul.h"
#include "program/kinds/norm/rms_norm.h"
#include "program/kinds/optimizer/optimizer.h"
#include "program/kinds/product/embedding.h"
#include "program/kinds/product/matmul.h"
#include "program/kinds/recurrence/gated_delta_rule.h"

namespace snug::bench {
namespace {

using program::Builder;
using program::DType;
using program::Shape;
using program::TensorId;

constexpr int64_t kTokens = 8192;
constexpr int64_t kHidden = 2048;

void measure(benchmark::State& state, PreparedOperation& operation) {
  operation.run();
  for (auto _ : state) operation.run();
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(operation.bytes_moved()) * 1e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

void copy_memory(benchmark::State& state) {
  const int64_t bytes = kTokens * kHidden * 4;
  std::vector<char> from(static_cast<size_t>(bytes), 1);
  std::vector<char> to(static_cast<size_t>(bytes), 2);
  const auto threads = static_cast<int>(state.range(0));
  for (auto _ : state) {
#pragma omp parallel num_threads(threads)
    {
      const int64_t part = bytes / threads;
      const int64_t begin = omp_get_thread_num() * part;
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<size_t>(part));
    }
  }
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(2 * bytes) * 1e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

// Operands of one shape.
template <typename Kind>
void elementwise(benchmark::State& state, const Kind& kind, int reads, int writes, DType type) {
  Builder builder("bench");
  std::vector<TensorId> in;
  std::vector<TensorId> out;
  for (int i = 0; i < reads; ++i) in.push_back(tensor(builder, {kTokens, kHidden}, type));
  for (int i = 0; i < writes; ++i) out.push_back(tensor(builder, {kTokens, kHidden}, type));
  if constexpr (std::is_same_v<Kind, program::Dropout>)
    in.push_back(tensor(builder, {2}, DType::i32));
  if constexpr (std::is_same_v<Kind, program::RmsNorm>)
    in.push_back(tensor(builder, {kHidden}, type));
  builder.emit(kind, in, out);
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  measure(state, operation);
}

void cast_to_bf16(benchmark::State& state) {
  Builder builder("bench");
  const TensorId x = tensor(builder, {kTokens, kHidden}, DType::f32);
  const TensorId y = tensor(builder, {kTokens, kHidden}, DType::bf16);
  builder.emit(program::Cast{}, {x}, {y});
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  measure(state, operation);
}

void accumulate(benchmark::State& state, bool stochastic) {
  Builder builder("bench");
  const TensorId x = tensor(builder, {kTokens, kHidden}, DType::bf16);
  const TensorId y = tensor(builder, {kTokens, kHidden}, stochastic ? DType::bf16 : DType::f32);
  std::vector<TensorId> reads{x};
  if (stochastic) reads.push_back(tensor(builder, {2}, DType::i32));
  builder.emit(program::Accumulate{.stochastic = stochastic, .seed = 1, .site = 1}, reads, {}, {y});
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  measure(state, operation);
}

void sum_rows(benchmark::State& state) {
  Builder builder("bench");
  const TensorId x = tensor(builder, {kTokens, kHidden}, DType::bf16);
  const TensorId y = tensor(builder, {kHidden}, DType::f32);
  builder.emit(program::SumRows{}, {x}, {y});
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  measure(state, operation);
}

void rms_norm_grad(benchmark::State& state) {
  Builder builder("bench");
  const Shape shape{kTokens, kHidden};
  const TensorId dy = tensor(builder, shape, DType::bf16);
  const TensorId x = tensor(builder, shape, DType::bf16);
  const TensorId w = tensor(builder, {kHidden}, DType::bf16);
  const TensorId addend = tensor(builder, shape, DType::bf16);
  const TensorId dx = tensor(builder, shape, DType::bf16);
  const TensorId dw = tensor(builder, {kHidden}, DType::f32);
  builder.emit(program::RmsNormGrad{.weight_gradient = true, .addend = true}, {dy, x, w, addend},
               {dx, dw});
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  measure(state, operation);
}

void rope(benchmark::State& state) {
  Builder builder("bench");
  const TensorId x = tensor(builder, {kTokens, kHidden}, DType::bf16);
  const TensorId table = tensor(builder, {kTokens, 64}, DType::f32);
  const TensorId y = tensor(builder, {kTokens, kHidden}, DType::bf16);
  builder.emit(program::Rope{.head_dim = 64}, {x, table}, {y});
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  measure(state, operation);
}

void embedding(benchmark::State& state, bool gradient) {
  constexpr int32_t kVocab = 32000;
  Builder builder("bench");
  const TensorId table = tensor(builder, {kVocab, kHidden}, DType::bf16);
  const TensorId ids = tensor(builder, {kTokens}, DType::i32);
  const TensorId y = tensor(builder, {kTokens, kHidden}, DType::bf16);
  if (gradient)
    builder.emit(program::EmbeddingGrad{}, {y, ids}, {table});
  else
    builder.emit(program::Embedding{}, {table, ids}, {y});
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  std::vector<int32_t> values(kTokens);
  for (size_t t = 0; t < values.size(); ++t)
    values[t] = static_cast<int32_t>(t * 2654435761U % kVocab);
  operation.fill_integers(ids, values);
  operation.run();
  for (auto _ : state) operation.run();
  const double rows = gradient ? kTokens + kVocab : 2 * kTokens;
  state.counters["GB/s"] =
      benchmark::Counter(rows * kHidden * 2 * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void global_norm(benchmark::State& state, DType type) {
  Builder builder("bench");
  const TensorId x = tensor(builder, {kTokens, kHidden}, type);
  const TensorId norm = tensor(builder, {1}, DType::f32);
  builder.emit(program::GlobalNorm{}, {x}, {norm});
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  measure(state, operation);
}

void adamw(benchmark::State& state, bool stochastic) {
  Builder builder("bench");
  const Shape shape{kTokens, kHidden};
  const DType type = stochastic ? DType::bf16 : DType::f32;
  const TensorId gradient = tensor(builder, shape, DType::f32);
  const TensorId factor = tensor(builder, {1}, DType::f32);
  const TensorId learning_rate = tensor(builder, {1}, DType::f32);
  const TensorId step = tensor(builder, {1}, DType::i32);
  std::vector<TensorId> updates{tensor(builder, shape, DType::bf16), tensor(builder, shape, type),
                                tensor(builder, shape, type)};
  if (!stochastic) updates.push_back(tensor(builder, shape, DType::f32));
  builder.emit(program::AdamW{.stochastic = stochastic}, {gradient, factor, learning_rate, step},
               {}, updates);
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  operation.fill_floats(factor, 1.0F);
  operation.fill_floats(learning_rate, 1e-5F);
  operation.fill_integers(step, {1});
  if (!stochastic) operation.fill_floats(updates[2], 0.5F);
  measure(state, operation);
}

struct AttentionShape {
  int64_t heads, kv_heads, head_dim;
  int64_t segments, queries, keys;
  DType type = DType::bf16;
};

// Causal, packed segments of one length.
void attention(benchmark::State& state, const AttentionShape& shape, bool gradient) {
  Builder builder("bench");
  const Shape q_shape{shape.segments * shape.queries, shape.heads * shape.head_dim};
  const Shape k_shape{shape.segments * shape.keys, shape.kv_heads * shape.head_dim};
  const Shape lse_shape{shape.heads, q_shape[0]};
  const float scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  const TensorId q = tensor(builder, q_shape, shape.type);
  const TensorId k = tensor(builder, k_shape, shape.type);
  const TensorId v = tensor(builder, k_shape, shape.type);
  const TensorId o = tensor(builder, q_shape, shape.type);
  const TensorId lse = tensor(builder, lse_shape, DType::f32);
  const TensorId q_bounds = tensor(builder, {shape.segments, 2}, DType::i32);
  const TensorId k_bounds = tensor(builder, {shape.segments, 2}, DType::i32);
  if (gradient) {
    const TensorId d_o = tensor(builder, q_shape, shape.type);
    const TensorId dq = tensor(builder, q_shape, shape.type);
    const TensorId dk = tensor(builder, k_shape, shape.type);
    const TensorId dv = tensor(builder, k_shape, shape.type);
    builder.emit(program::AttentionGrad{shape.heads, shape.kv_heads, shape.head_dim, scale},
                 {d_o, q, k, v, o, lse, q_bounds, k_bounds}, {dq, dk, dv});
  } else {
    builder.emit(program::Attention{shape.heads, shape.kv_heads, shape.head_dim, scale},
                 {q, k, v, q_bounds, k_bounds}, {o, lse});
  }
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  std::vector<int32_t> queries;
  std::vector<int32_t> keys;
  for (int64_t s = 0; s < shape.segments; ++s)
    for (int64_t end = s; end < s + 2; ++end) {
      queries.push_back(static_cast<int32_t>(end * shape.queries));
      keys.push_back(static_cast<int32_t>(end * shape.keys));
    }
  operation.fill_integers(q_bounds, queries);
  operation.fill_integers(k_bounds, keys);
  if (gradient) operation.fill_floats(lse, 5.0F);
  const auto nq = static_cast<double>(shape.queries);
  const double pairs = nq * (static_cast<double>(shape.keys) - nq) + nq * (nq + 1) / 2;
  const double products = gradient ? 5 : 2;
  const double flops =
      2 * products * pairs * static_cast<double>(shape.segments * shape.heads * shape.head_dim);
  operation.run();
  for (auto _ : state) operation.run();
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  const double k_bytes = 2.0 * static_cast<double>(k_shape.elements() * base::size_of(shape.type));
  state.counters["k and v GB/s"] =
      benchmark::Counter(k_bytes * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["scratch MiB"] = static_cast<double>(operation.workspace_bytes()) / (1 << 20);
}

void count_flops(benchmark::State& state, PreparedOperation& operation, double flops) {
  operation.run();
  for (auto _ : state) operation.run();
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void product_f32(benchmark::State& state, int64_t size) {
  Builder builder("bench");
  const TensorId a = tensor(builder, {size, size}, DType::f32);
  const TensorId b = tensor(builder, {size, size}, DType::f32);
  builder.emit(program::Matmul{}, {a, b}, {tensor(builder, {size, size}, DType::f32)});
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  count_flops(state, operation, 2.0 * std::pow(static_cast<double>(size), 3));
}

struct DeltaRuleShape {
  int64_t tokens, key_heads, value_heads, head_dim;
  float decay;  // g of every token
};

void gated_delta_rule(benchmark::State& state, const DeltaRuleShape& shape, bool gradient) {
  Builder builder("bench");
  const Shape keys{shape.tokens, shape.key_heads * shape.head_dim};
  const Shape values{shape.tokens, shape.value_heads * shape.head_dim};
  const Shape gates{shape.tokens, shape.value_heads};
  const TensorId q = tensor(builder, keys, DType::bf16);
  const TensorId k = tensor(builder, keys, DType::bf16);
  const TensorId v = tensor(builder, values, DType::bf16);
  const TensorId g = tensor(builder, gates, DType::f32);
  const TensorId beta = tensor(builder, gates, DType::f32);
  const TensorId bounds = tensor(builder, {1, 2}, DType::i32);
  const TensorId o = tensor(builder, values, DType::bf16);
  if (gradient)
    builder.emit(program::GatedDeltaRuleGrad{shape.key_heads, shape.value_heads},
                 {o, q, k, v, g, beta, bounds},
                 {tensor(builder, keys, DType::bf16), tensor(builder, keys, DType::bf16),
                  tensor(builder, values, DType::bf16), tensor(builder, gates, DType::f32),
                  tensor(builder, gates, DType::f32)});
  else
    builder.emit(program::GatedDeltaRule{shape.key_heads, shape.value_heads},
                 {q, k, v, g, beta, bounds}, {o});
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  operation.fill_integers(bounds, {0, static_cast<int32_t>(shape.tokens)});
  operation.fill_floats(g, shape.decay);
  operation.fill_floats(beta, 0.5F);
  // The plan's count of a token's products with the state and with its chunk (the kind's cost).
  const auto d = static_cast<double>(shape.head_dim);
  const double chunk = program::kDeltaChunkTokens;
  const double flops = static_cast<double>(shape.tokens * shape.value_heads) * 2.0 *
                       (3.0 * d * d + 0.5 * chunk * 4.0 * d) * (gradient ? 3.0 : 1.0);
  count_flops(state, operation, flops);
}

#define SNUG_BENCHMARK(function, ...) \
  BENCHMARK_CAPTURE(function, __VA_ARGS__)->Arg(1)->Arg(2)->UseRealTime()->MinWarmUpTime(0.1)

BENCHMARK(copy_memory)->Arg(1)->Arg(2)->UseRealTime();
SNUG_BENCHMARK(elementwise, add_f32, program::Add{}, 2, 1, DType::f32);
SNUG_BENCHMARK(elementwise, add_bf16, program::Add{}, 2, 1, DType::bf16);
BENCHMARK(cast_to_bf16)->Arg(1)->Arg(2)->UseRealTime();
SNUG_BENCHMARK(accumulate, bf16_to_f32, false);
SNUG_BENCHMARK(accumulate, stochastic, true);
BENCHMARK(sum_rows)->Arg(1)->Arg(2)->UseRealTime();
SNUG_BENCHMARK(elementwise, dropout, program::Dropout{.probability = 0.1F, .row_length = 1024}, 1,
               1, DType::bf16);
SNUG_BENCHMARK(elementwise, rms_norm, program::RmsNorm{}, 1, 1, DType::bf16);
BENCHMARK(rms_norm_grad)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(rope)->Arg(1)->Arg(2)->UseRealTime();
SNUG_BENCHMARK(elementwise, silu_mul, program::SiluMul{}, 2, 1, DType::bf16);
SNUG_BENCHMARK(elementwise, silu_mul_f32, program::SiluMul{}, 2, 1, DType::f32);
SNUG_BENCHMARK(elementwise, silu_mul_grad, program::SiluMulGrad{}, 3, 2, DType::bf16);
SNUG_BENCHMARK(embedding, forward, false);
SNUG_BENCHMARK(embedding, gradient, true);
SNUG_BENCHMARK(global_norm, f32, DType::f32);
SNUG_BENCHMARK(adamw, master, false);
SNUG_BENCHMARK(adamw, stochastic, true);

constexpr AttentionShape kTraining{9, 3, 64, 8, 1024, 1024};
constexpr AttentionShape kTrainingRow{9, 3, 64, 2, 1024, 1024};
constexpr AttentionShape kTrainingF32{9, 3, 64, 8, 1024, 1024, DType::f32};
constexpr AttentionShape kShort{9, 3, 64, 64, 128, 128};
constexpr AttentionShape kWide{32, 8, 128, 1, 2048, 2048};
constexpr AttentionShape kDecode{32, 8, 128, 1, 1, 4096};
constexpr AttentionShape kPrefill{32, 8, 128, 1, 256, 4096};
SNUG_BENCHMARK(attention, head64_segments1024, kTraining, false);
SNUG_BENCHMARK(attention, head64_row2048, kTrainingRow, false);
SNUG_BENCHMARK(attention, head64_segments1024_f32, kTrainingF32, false);
SNUG_BENCHMARK(attention, head64_segments128, kShort, false);
SNUG_BENCHMARK(attention, head128_segment2048, kWide, false);
SNUG_BENCHMARK(attention, decode_keys4096, kDecode, false);
SNUG_BENCHMARK(attention, prefill256_keys4096, kPrefill, false);
SNUG_BENCHMARK(attention, grad_head64_segments1024, kTraining, true);
SNUG_BENCHMARK(attention, grad_head64_row2048, kTrainingRow, true);
SNUG_BENCHMARK(attention, grad_head64_segments1024_f32, kTrainingF32, true);
SNUG_BENCHMARK(attention, grad_head64_segments128, kShort, true);
SNUG_BENCHMARK(attention, grad_head128_segment2048, kWide, true);
SNUG_BENCHMARK(product_f32, 1024, 1024);
constexpr DeltaRuleShape kDeltaNet{2048, 16, 32, 128, -0.1F};
constexpr DeltaRuleShape kForgetful{2048, 16, 32, 128, -3.5F};
constexpr DeltaRuleShape kNarrowHeads{2048, 16, 16, 64, -0.1F};
SNUG_BENCHMARK(gated_delta_rule, heads128, kDeltaNet, false);
SNUG_BENCHMARK(gated_delta_rule, heads128_forgetful, kForgetful, false);
SNUG_BENCHMARK(gated_delta_rule, heads64, kNarrowHeads, false);
SNUG_BENCHMARK(gated_delta_rule, grad_heads128, kDeltaNet, true);
SNUG_BENCHMARK(gated_delta_rule, grad_heads128_forgetful, kForgetful, true);
SNUG_BENCHMARK(gated_delta_rule, grad_heads64, kNarrowHeads, true);

}  // namespace
}  // namespace snug::bench
