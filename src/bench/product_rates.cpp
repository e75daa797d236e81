#include "bench/product_rates.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "backends/backend.h"
#include "backends/cpu/context.h"
#include "backends/cpu/product/product.h"
#include "base/console.h"
#include "base/error.h"
#include "base/seconds_since.h"
#include "plan/spec/resolve.h"
#include "plan/spec/spec.h"

namespace snug::bench {
namespace {

using backends::cpu::MatmulOperands;
using backends::cpu::MatmulPrimitive;
using backends::cpu::MatmulSpec;
using base::DType;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr size_t kAlignment = 64;
constexpr double kMinProductSeconds = 0.05;
constexpr int kMinRuns = 3;
// The lengths of pieces: multiples of every kernel's tile, from a length whose thousand columns fit
// in the second-level cache up to one at which pieces no longer help.
constexpr int64_t kPieces[] = {512, 1024, 2048, 4096};

struct Released {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte[], Released>;

Memory reserve(int64_t bytes) {
  const size_t rounded = (static_cast<size_t>(bytes) + kAlignment) / kAlignment * kAlignment;
  return Memory(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
}

// Small values of both signs, since hardware can multiply zeros faster and denormals slower.
Memory operand(int64_t elements, DType type) {
  Memory memory = reserve(elements * base::size_of(type));
  uint32_t state = 0x9E3779B9U;
  for (int64_t i = 0; i < elements; ++i) {
    state = state * 1664525U + 1013904223U;
    const float value = static_cast<float>(state >> 8) * 0x1p-28F - 0.03125F;
    if (type == DType::bf16)
      reinterpret_cast<base::BFloat16*>(memory.get())[i] = base::to_bfloat16(value);
    else
      reinterpret_cast<float*>(memory.get())[i] = value;
  }
  return memory;
}

// The seconds of the fastest of several runs of multiply(operands, scratch), after one warm-up run.
template <typename F>
double fastest(const MatmulSpec& spec, int64_t scratch_bytes, double least_seconds,
               const F& multiply) {
  const Memory a = operand(spec.m * spec.k, spec.a_type);
  const Memory b = operand(spec.k * spec.n, spec.b_type);
  const Memory c = operand(spec.m * spec.n, spec.c_type);
  const Memory scratch = reserve(scratch_bytes);
  const MatmulOperands operands{.a = a.get(), .b = b.get(), .c = c.get()};
  multiply(operands, scratch.get());
  double best = std::numeric_limits<double>::max();
  double spent = 0;
  for (int run = 0; run < kMinRuns || spent < least_seconds; ++run) {
    const auto start = Clock::now();
    multiply(operands, scratch.get());
    const double seconds = base::seconds_since(start);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

double library_seconds(const MatmulSpec& spec, double least_seconds) {
  MatmulPrimitive& primitive = backends::cpu::matmul_primitive(spec);
  backends::cpu::create(primitive);
  return fastest(spec, backends::cpu::scratch_bytes(primitive), least_seconds,
                 [&](const MatmulOperands& operands, std::byte* scratch) {
                   backends::cpu::execute(primitive, operands, scratch);
                 });
}

// The seconds of the product with the kernel that a step chooses for it.
double own_seconds(const MatmulSpec& spec, double least_seconds,
                   backends::cpu::CpuContext& context) {
  const backends::cpu::Product product(spec, backends::cpu::algorithm_of(spec, context), context);
  product.create();
  return fastest(spec, product.scratch_bytes(), least_seconds,
                 [&](const MatmulOperands& operands, std::byte* scratch) {
                   product.multiply(operands, scratch, context);
                 });
}

// The product with the dimension that `dimension` points to replaced by `length`.
MatmulSpec cut(MatmulSpec spec, int64_t MatmulSpec::*dimension, int64_t length) {
  const bool a_transposed = spec.a_strides[0] == 1 && spec.a_strides[1] != 1;
  const bool b_transposed = spec.b_strides[0] == 1 && spec.b_strides[1] != 1;
  spec.*dimension = length;
  spec.a_strides[a_transposed ? 1 : 0] = a_transposed ? spec.m : spec.k;
  spec.b_strides[b_transposed ? 1 : 0] = b_transposed ? spec.k : spec.n;
  spec.c_stride = spec.n;
  // Pieces along the inner dimension add to the results of earlier pieces.
  if (dimension == &MatmulSpec::k) spec.add = MatmulSpec::Add::destination;
  return spec;
}

ProductRate measure(const JobProduct& product, double least_seconds,
                    backends::cpu::CpuContext& context) {
  ProductRate rate{product, product.spec, library_seconds(product.spec, least_seconds),
                   own_seconds(product.spec, least_seconds, context)};
  for (int64_t MatmulSpec::*dimension : {&MatmulSpec::m, &MatmulSpec::n, &MatmulSpec::k}) {
    for (const int64_t length : kPieces) {
      const int64_t whole = product.spec.*dimension;
      if (whole < 2 * length) break;
      const MatmulSpec piece = cut(product.spec, dimension, length);
      const double pieces = static_cast<double>(whole) / static_cast<double>(length);
      const double seconds = pieces * library_seconds(piece, least_seconds);
      if (seconds >= rate.seconds) continue;
      rate.piece = piece;
      rate.seconds = seconds;
    }
  }
  return rate;
}

struct Sum {
  double flops = 0;
  double seconds = 0;
  double own_seconds = 0;
  json to_json() const {
    const auto rate = [&](double spent) { return spent > 0 ? json(flops / spent) : json(); };
    return {{"flops", flops},
            {"seconds", seconds},
            {"flops_per_second", rate(seconds)},
            {"own_seconds", own_seconds},
            {"own_flops_per_second", rate(own_seconds)}};
  }
};

// The sum over a step's products: the wide ones, the narrow ones, or both.
Sum sum_of(const std::vector<ProductRate>& rates, bool wide, bool narrow) {
  Sum sum;
  for (const ProductRate& rate : rates) {
    if (rate.product.is_narrow ? !narrow : !wide) continue;
    const auto count = static_cast<double>(rate.product.count);
    sum.flops += count * rate.product.flops();
    sum.seconds += count * rate.seconds;
    sum.own_seconds += count * rate.own_seconds;
  }
  return sum;
}

json json_of(const ProductRate& rate) {
  const MatmulSpec& spec = rate.product.spec;
  return {{"m", spec.m},
          {"n", spec.n},
          {"k", spec.k},
          {"types", fmt::format("{} {} > {}", base::name_of(spec.a_type),
                                base::name_of(spec.b_type), base::name_of(spec.c_type))},
          {"count", rate.product.count},
          {"narrow", rate.product.is_narrow},
          {"flops", rate.product.flops()},
          {"seconds", rate.seconds},
          {"own_seconds", rate.own_seconds},
          {"piece", {rate.piece.m, rate.piece.n, rate.piece.k}}};
}

void print_table(const std::vector<ProductRate>& rates) {
  for (const ProductRate& rate : rates) {
    const MatmulSpec& spec = rate.product.spec;
    base::print(
        "{:>4} x ({:>5}, {:>5}, {:>5}) {} {} > {:<4} {:7.1f} GFLOP/s  in ({}, {}, {}); own "
        "{:7.1f}\n",
        rate.product.count, spec.m, spec.n, spec.k, base::name_of(spec.a_type),
        base::name_of(spec.b_type), base::name_of(spec.c_type),
        rate.product.flops() / rate.seconds * 1e-9, rate.piece.m, rate.piece.n, rate.piece.k,
        rate.product.flops() / rate.own_seconds * 1e-9);
  }
  const auto line = [](const char* name, const Sum& sum) {
    const auto rate = [&](double seconds) {
      return seconds > 0 ? sum.flops / seconds * 1e-9 : 0.0;
    };
    base::print(
        "{:<6} {:7.1f} GFLOP: oneDNN {:8.2f} ms, {:7.1f} GFLOP/s; own {:8.2f} ms, {:7.1f}\n", name,
        sum.flops * 1e-9, sum.seconds * 1e3, rate(sum.seconds), sum.own_seconds * 1e3,
        rate(sum.own_seconds));
  };
  line("all", sum_of(rates, true, true));
  line("wide", sum_of(rates, true, false));
  line("narrow", sum_of(rates, false, true));
}

// Refuses products that oneDNN computes wrongly with AMX tiles: it is measured with tiles, although
// a job does not let it use them (isa.h).
void refuse_products_that_tiles_fail(const std::vector<JobProduct>& products) {
  if (!backends::cpu::onednn_has_tiles()) return;
  for (const JobProduct& product : products)
    if (product.spec.a_type == DType::bf16 && product.spec.k % 2 != 0)
      base::throw_user_error(
          "oneDNN {} is not measured on the product ({} x {}) ({} x {}): on AMX tiles an odd inner "
          "dimension can end it with an illegal instruction. Set SNUG_ISA=v4_bf16, which measures "
          "it without tiles, or choose even dimensions.",
          backends::cpu::onednn_version(), product.spec.m, product.spec.k, product.spec.k,
          product.spec.n);
}

}  // namespace

std::vector<ProductRate> measure_products(const std::vector<JobProduct>& products,
                                          double least_seconds) {
  backends::cpu::CpuContext context = backends::cpu::open_context(omp_get_max_threads());
  std::vector<ProductRate> rates;
  rates.reserve(products.size());
  for (const JobProduct& product : products)
    rates.push_back(measure(product, least_seconds, context));
  return rates;
}

int products(const formats::Recipe& given, bool as_json) {
  given.require("model");
  const models::ModelSource model = models::find_model(given.model);
  const formats::Recipe recipe = plan::resolve(given, model.config);
  if (recipe.backend != formats::BackendName::cpu)
    recipe.fail("backend",
                fmt::format("is {}, but it is the cpu backend that multiplies with oneDNN",
                            base::word_of(recipe.backend)));
  backends::cpu::limit_onednn(backends::cpu::detect_isa());
  const auto backend = backends::open_backend(formats::BackendName::cpu,
                                              {.threads = static_cast<int>(recipe.threads)});
  const plan::TrainingSpec spec = plan::training_spec(recipe, model.config, *backend);
  const plan::Job job = plan::plan_training(spec, *backend);
  const std::vector<JobProduct> of_the_job = job_products(job, spec);
  refuse_products_that_tiles_fail(of_the_job);
  const auto rates = measure_products(of_the_job, kMinProductSeconds);
  if (!as_json) {
    print_table(rates);
    return 0;
  }
  json document{{"libraries", backend->library_versions()},
                {"all", sum_of(rates, true, true).to_json()},
                {"wide", sum_of(rates, true, false).to_json()},
                {"narrow", sum_of(rates, false, true).to_json()},
                {"products", json::array()}};
  for (const ProductRate& rate : rates) document["products"].push_back(json_of(rate));
  base::print("{}\n", document.dump(2));
  return 0;
}

}  // namespace snug::bench
