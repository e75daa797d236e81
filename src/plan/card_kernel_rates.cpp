// What kernels of a card reach by its data sheet, where they were not measured: own kernels,
// instructions, attention that a library does.
#include <algorithm>

#include "plan/kernel_instructions.h"
#include "plan/library_attention.h"
#include "plan/rates.h"

namespace snug::plan {
namespace {

// Own attention kernels (mma.sync) reached 213 of 989 TFLOP/s forward and 146 in the gradient on an
// H100 (heads of 128, long segments; bench/results); attention that a library does has shares of
// its own (library_attention.h).
constexpr double kOwnAttention = 0.215;
constexpr double kOwnGradient = 0.148 / kOwnAttention;  // of that
// Instructions could be started as fast as f32 multiply-adds, of which the peak counts two
// operations each, at 1.75 of the 1.98 GHz that peaks are stated for (a Hopper card under load);
// AdamW with 8-bit moments started 47 % of them there. Cards with half as many f32 lanes (A100) may
// start up to twice as many.
constexpr double kClock = 1.75 / 1.98;
constexpr double kStarted = 0.47;

}  // namespace

void Rates::set_kernels(const program::DataSheetRates& peaks) {
  roofline_.instructions_per_second = kStarted * kClock * peaks.f32_flops_per_second / 2;
  roofline_.attention_flops_per_second = kOwnAttention * peaks.bf16_flops_per_second;
  roofline_.library_attention_peak = peaks.bf16_flops_per_second;
}

double Rates::instruction_seconds(const RateKey& key) const {
  if (roofline_.instructions_per_second == 0) return 0;
  return kernel_instructions(key) / roofline_.instructions_per_second;
}

// Where the table is so careful that own kernels would be faster, it is too careful.
double Rates::attention_flops_per_second(const program::AttentionRate& attention) const {
  const double own =
      roofline_.attention_flops_per_second * (attention.is_gradient ? kOwnGradient : 1.0);
  if (!attention.by_library)
    return attention.tensor_cores
               ? own / adjusted_attention_factor(attention)
               : own * roofline_.f32_flops_per_second / roofline_.flops_per_second;
  const LibraryAttention library{.is_gradient = attention.is_gradient,
                                 .segment_tokens = attention.segment_tokens,
                                 .head_dim = attention.head_dim};
  return std::max(own, roofline_.library_attention_peak * share_of_peak(library));
}

}  // namespace snug::plan
