// How fast the CPU backend multiplies matrices: GFLOP/s on the shapes of a model of 135M parameters
// (576 wide, 1536 in the mlp, 3 x 64 wide keys, 49152 tokens) at 2048 tokens, forward, gradient of
// the input, gradient of the weight, and those of LoRA with r = 16. Argument: threads. SNUG_ISA
// selects the instruction set; below v4_bf16 the bf16 ones are left away.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <string>

#include "backends/cpu/isa.h"
#include "base/error.h"
#include "prepared_operation.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/product/matmul.h"

namespace snug::bench {
namespace {

using program::Builder;
using program::DType;
using program::Matmul;
using program::Shape;
using program::TensorId;

constexpr int64_t kTokens = 2048;
constexpr int64_t kRank = 16;

void report(benchmark::State& state, PreparedOperation& operation, double flops) {
  operation.run();
  for (auto _ : state) operation.run();
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["scratch_KiB"] = static_cast<double>(operation.workspace_bytes()) / 1024.0;
}

// (m, n) from k, in the order and transposition of the attributes.
struct Product {
  std::string name;
  int64_t m, n, k;
  Matmul matmul;
  DType result;  // of bf16 factors
};

void multiply(benchmark::State& state, const Product& product, DType factors) {
  const auto& [name, m, n, k, matmul, wanted] = product;
  const DType result = factors == DType::f32 ? factors : wanted;
  Builder builder("bench");
  std::vector<TensorId> reads{
      tensor(builder, matmul.transpose_a ? Shape{k, m} : Shape{m, k}, factors),
      tensor(builder, matmul.transpose_b ? Shape{n, k} : Shape{k, n}, factors)};
  if (matmul.addend) reads.push_back(tensor(builder, {m, n}, result));
  const TensorId c = tensor(builder, {m, n}, result);
  if (matmul.accumulate)
    builder.emit(matmul, reads, {}, {c});
  else
    builder.emit(matmul, reads, {c});
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  report(state, operation, 2.0 * static_cast<double>(m * n * k));
}

// A linear of (out, in) with its three products, and its LoRA pair's six.
std::vector<Product> products_of(const std::string& name, int64_t in, int64_t out) {
  const Matmul forward{.transpose_b = true};
  const Matmul add_forward{.transpose_b = true, .alpha = 2.0F, .addend = true};
  const Matmul add_input{.addend = true};
  const Matmul weight{.transpose_a = true};
  const Matmul next_weight{.transpose_a = true, .accumulate = true};
  return {{name + "/forward", kTokens, out, in, forward, DType::bf16},
          {name + "/input_gradient", kTokens, in, out, {}, DType::bf16},
          {name + "/weight_gradient", out, in, kTokens, weight, DType::f32},
          {name + "/weight_gradient_next", out, in, kTokens, next_weight, DType::f32},
          {name + "/lora_a_forward", kTokens, kRank, in, forward, DType::bf16},
          {name + "/lora_b_forward", kTokens, out, kRank, add_forward, DType::bf16},
          {name + "/lora_b_input_gradient", kTokens, kRank, out, {}, DType::bf16},
          {name + "/lora_a_input_gradient", kTokens, in, kRank, add_input, DType::bf16},
          {name + "/lora_b_weight_gradient", out, kRank, kTokens, weight, DType::f32},
          {name + "/lora_a_weight_gradient", kRank, in, kTokens, weight, DType::f32}};
}

// The head with its loss and gradients, all rows trained; FLOPs of its two or three products.
void train_head(benchmark::State& state, bool weight_gradient, DType type) {
  constexpr int64_t kVocab = 49152;
  constexpr int64_t kWidth = 576;
  Builder builder("bench");
  const TensorId hidden = tensor(builder, {kTokens, kWidth}, type);
  const TensorId weight = tensor(builder, {kVocab, kWidth}, type);
  const TensorId targets = tensor(builder, {kTokens}, DType::i32);
  const TensorId inverse_tokens = tensor(builder, {1}, DType::f32);
  std::vector<TensorId> writes{tensor(builder, {kTokens}, DType::f32),
                               tensor(builder, {1}, DType::f32),
                               tensor(builder, {kTokens, kWidth}, type)};
  if (weight_gradient) writes.push_back(tensor(builder, {kVocab, kWidth}, DType::f32));
  builder.emit(program::LinearCrossEntropyTrain{.weight_gradient = weight_gradient},
               {hidden, weight, targets, inverse_tokens}, writes);
  PreparedOperation operation(builder.take(), static_cast<int>(state.range(0)));
  const double products = weight_gradient ? 3 : 2;
  report(state, operation, products * 2.0 * static_cast<double>(kTokens * kVocab * kWidth));
}

void register_type(DType type, int threads) {
  const auto add = [&](const std::string& name, auto function) {
    benchmark::RegisterBenchmark((std::string(base::name_of(type)) + "/" + name).c_str(), function)
        ->Arg(threads)
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
  };
  const std::pair<int64_t, int64_t> sizes[] = {{576, 576}, {576, 192}, {576, 1536}, {1536, 576}};
  for (const auto& [in, out] : sizes)
    for (const Product& product : products_of(fmt::format("{}x{}", out, in), in, out))
      add(product.name,
          [product, type](benchmark::State& state) { multiply(state, product, type); });
  for (const bool weight_gradient : {false, true})
    add(weight_gradient ? "head_with_weight_gradient" : "head",
        [=](benchmark::State& state) { train_head(state, weight_gradient, type); });
  for (const int64_t rows : {1, 8})
    add(fmt::format("decode_{}_rows", rows), [=](benchmark::State& state) {
      multiply(state, {"", rows, 1536, 576, {.transpose_b = true}, DType::bf16}, type);
    });
}

}  // namespace
}  // namespace snug::bench

int main(int argc, char** argv) {
  const int threads = omp_get_num_procs();
  snug::bench::register_type(snug::base::DType::f32, threads);
  if (snug::backends::cpu::has_bf16_products(snug::backends::cpu::detect_isa()))
    snug::bench::register_type(snug::base::DType::bf16, threads);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
