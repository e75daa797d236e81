// What kernels of a card reach by its data sheet, where they were not measured: own kernels,
// instructions, attention that a library does.
#include <algorithm>

#include "plan/time/kernel_instructions.h"
#include "plan/time/library_attention.h"
#include "plan/time/rates.h"

namespace snug::plan {
namespace {

using program::TensorCores;

// Own attention on the tensor cores, by what a warp does with its 16 rows and a tile of the other
// side, heads of 128: products of 16 x 8 x 16 that it makes and that are counted as work, and the
// share of its peak that an H100 reached (213 and 146 of 989 TFLOP/s, long segments;
// bench/results). The gradient makes seven products in two kernels, of which five are counted.
struct OwnAttention {
  double made;
  double counted;
  double measured_share;
};
constexpr OwnAttention kForward{.made = 128, .counted = 128, .measured_share = 0.215};
constexpr OwnAttention kGradient{.made = 224, .counted = 160, .measured_share = 0.148};

// What warps do between their products (reading, weighing, waiting) is the same number of cycles on
// every card, and lies next to the products of other warps alone.
constexpr double cycles_between_products(const OwnAttention& kernel, double warps) {
  constexpr TensorCores kHopper;
  return warps * kernel.counted * kHopper.peak_cycles / kernel.measured_share -
         warps * kernel.made * kHopper.warp_cycles;
}
constexpr double kForwardBetween = cycles_between_products(kForward, TensorCores().attention_warps);
constexpr double kGradientBetween =
    cycles_between_products(kGradient, TensorCores().gradient_warps);

double share_reached(const OwnAttention& kernel, double warps, double between,
                     const TensorCores& cores) {
  return warps * kernel.counted * cores.peak_cycles /
         (warps * kernel.made * cores.warp_cycles + between);
}

// Instructions could be started as fast as f32 multiply-adds, of which the peak counts two
// operations each, at 1.75 of the 1.98 GHz that peaks are stated for (a Hopper card under load);
// AdamW with 8-bit moments started 47 % of them there. Cards with half as many f32 lanes (A100) may
// start up to twice as many.
constexpr double kClock = 1.75 / 1.98;
constexpr double kStarted = 0.47;

}  // namespace

void Rates::set_kernels(const program::DataSheetRates& peaks) {
  const TensorCores& cores = peaks.tensor_cores;
  roofline_.instructions_per_second = kStarted * kClock * peaks.f32_flops_per_second / 2;
  roofline_.attention_flops_per_second =
      peaks.bf16_flops_per_second *
      share_reached(kForward, cores.attention_warps, kForwardBetween, cores);
  roofline_.attention_grad_flops_per_second =
      peaks.bf16_flops_per_second *
      share_reached(kGradient, cores.gradient_warps, kGradientBetween, cores);
  // Off the tensor cores it is taken to reach the same shares of the f32 peak.
  roofline_.f32_attention_flops_per_second = kForward.measured_share * peaks.f32_flops_per_second;
  roofline_.f32_attention_grad_flops_per_second =
      kGradient.measured_share * peaks.f32_flops_per_second;
  roofline_.library_attention_peak = peaks.bf16_flops_per_second;
}

double Rates::instruction_seconds(const RateKey& key) const {
  if (roofline_.instructions_per_second == 0) return 0;
  return kernel_instructions(key) / roofline_.instructions_per_second;
}

// Where the table is so careful that own kernels would be faster, it is too careful.
double Rates::attention_flops_per_second(const RateKey& key) const {
  const program::AttentionRate& attention = *key.attention;
  const bool is_gradient = attention.is_gradient;
  const double own = is_gradient ? roofline_.attention_grad_flops_per_second
                                 : roofline_.attention_flops_per_second;
  if (key.form.by_library) {
    const LibraryAttention library{.is_gradient = is_gradient,
                                   .segment_tokens = attention.segment_tokens,
                                   .head_dim = attention.head_dim};
    return std::max(own, roofline_.library_attention_peak * share_of_peak(library));
  }
  if (key.form.tensor_cores) return own / adjusted_attention_factor(key);
  return is_gradient ? roofline_.f32_attention_grad_flops_per_second
                     : roofline_.f32_attention_flops_per_second;
}

}  // namespace snug::plan
