// What kernels of a card reach by its data sheet, where they were not measured: own kernels,
// instructions, attention that a library does.
#include <algorithm>
#include <cmath>
#include <vector>

#include "plan/time/kernel_instructions.h"
#include "plan/time/library_attention.h"
#include "plan/time/rates.h"

namespace snug::plan {
namespace {

using program::TensorCores;

// Of own attention on the tensor cores, what a kernel does with 16 rows of a warp and 64 of the
// other side: products of 16 x 8 x 16, and other instructions of each lane (reading, weighing). And
// the shared memory of its blocks.
struct Loop {
  double products;
  double others;
  double block_bytes;
};
// Those that make one of the products of matrices over the whole head.
constexpr double products_of(double head_dim) { return head_dim / 2; }

Loop loop_of(double products, double instructions_of_a_pair, double block_bytes) {
  constexpr double kPairsOfALane = 16.0 * 64 / 32;
  return {products, instructions_of_a_pair * kPairsOfALane - products, block_bytes};
}

// The kernels of the forward pass or of the gradient, and what they do that counts as work. Heads
// above 128 are priced by the kernels for 256.
struct OwnAttention {
  double counted;
  std::vector<Loop> loops;
};

// Two products of matrices.
OwnAttention forward_kernels(bool is_wide) {
  const double each = products_of(is_wide ? 256 : 128);
  const double instructions = attention_loops(is_wide).forward;
  return {2 * each, {loop_of(2 * each, instructions, is_wide ? 96 << 10 : 80 << 10)}};
}

// Five products, of which two are made in each of the kernels: one for queries makes three, one for
// keys and values four. Of wide heads keys and values have kernels of their own, with three and
// two.
OwnAttention gradient_kernels(bool is_wide) {
  const AttentionLoops loops = attention_loops(is_wide);
  constexpr double kBytes = (64 << 10) + 1024;
  constexpr double kWideBytes = (96 << 10) + 512;
  constexpr double kWideValueBytes = (64 << 10) + 512;
  const double each = products_of(is_wide ? 256 : 128);
  if (!is_wide)
    return {5 * each,
            {loop_of(3 * each, loops.query, kBytes), loop_of(4 * each, loops.key, kBytes)}};
  return {5 * each,
          {loop_of(3 * each, loops.query, kWideBytes), loop_of(3 * each, loops.key, kWideBytes),
           loop_of(2 * each, loops.value, kWideValueBytes)}};
}

// Each block that a multiprocessor runs at a time has a warp in each quarter; registers hold two
// blocks (bench/results/kernels.md).
double warps_of(const Loop& loop, const TensorCores& cores) {
  const double block = loop.block_bytes + cores.reserved_bytes;
  return std::clamp(std::floor(cores.shared_bytes / block), 1.0, 2.0);
}

// The cycles of a quarter. An instruction besides products takes the same number of cycles on every
// card, `cycles_each`, and lies next to the products of other warps alone.
double cycles_of(const OwnAttention& kernels, double cycles_each, const TensorCores& cores) {
  double cycles = 0;
  for (const Loop& loop : kernels.loops)
    cycles += loop.products * cores.warp_cycles + loop.others * cycles_each / warps_of(loop, cores);
  return cycles;
}

// The share of its peak that an H100 reached with heads of 128 (213 and 146 of 989 TFLOP/s, long
// segments; bench/results) says what an instruction takes.
constexpr double kForwardShare = 0.215;
constexpr double kGradientShare = 0.148;
double cycles_of_others(const OwnAttention& measured, double share) {
  constexpr TensorCores kHopper;
  const double of_products = cycles_of(measured, 0, kHopper);
  const double all = measured.counted * kHopper.peak_cycles / share;
  return (all - of_products) / (cycles_of(measured, 1, kHopper) - of_products);
}

double share_reached(const OwnAttention& kernels, const OwnAttention& measured, double share,
                     const TensorCores& cores) {
  return kernels.counted * cores.peak_cycles /
         cycles_of(kernels, cycles_of_others(measured, share), cores);
}
double forward_share(bool is_wide, const TensorCores& cores) {
  return share_reached(forward_kernels(is_wide), forward_kernels(false), kForwardShare, cores);
}
double gradient_share(bool is_wide, const TensorCores& cores) {
  return share_reached(gradient_kernels(is_wide), gradient_kernels(false), kGradientShare, cores);
}

// The part of a wide head's columns that are its own: kernels pad it to whole lines of 64.
double own_columns(double head_dim) {
  constexpr double kLine = 64;
  return head_dim / (std::ceil(head_dim / kLine) * kLine);
}

// Instructions could be started as fast as f32 multiply-adds, of which the peak counts two
// operations each, at 1.75 of the 1.98 GHz that peaks are stated for (a Hopper card under load);
// AdamW with 8-bit moments started 47 % of them there. Cards with half as many f32 lanes (A100) may
// start up to twice as many.
constexpr double kClock = 1.75 / 1.98;
constexpr double kStarted = 0.47;

// Heads wider than this have tiles of 16 rows, so that half of a warp's lanes compute scores that
// nobody uses. Counted by instructions, of 5 that make scores one is of use then (of 9 four), and
// of 50 that apply them 32 (of 44 as well): together half as many.
constexpr double kWidestOfWholeWarps = 256;
constexpr double kShareOfHalfWarps = 0.5;

double own_attention_flops_per_second(const program::AttentionRate& attention,
                                      const Roofline& roofline) {
  if (attention.head_dim <= kWideHeads)
    return attention.is_gradient ? roofline.attention_grad_flops_per_second
                                 : roofline.attention_flops_per_second;
  return own_columns(attention.head_dim) * (attention.is_gradient
                                                ? roofline.wide_attention_grad_flops_per_second
                                                : roofline.wide_attention_flops_per_second);
}

}  // namespace

void Rates::set_kernels(const program::DataSheetRates& peaks) {
  const TensorCores& cores = peaks.tensor_cores;
  roofline_.instructions_per_second = kStarted * kClock * peaks.f32_flops_per_second / 2;
  const double peak = peaks.bf16_flops_per_second;
  roofline_.attention_flops_per_second = peak * forward_share(false, cores);
  roofline_.attention_grad_flops_per_second = peak * gradient_share(false, cores);
  roofline_.wide_attention_flops_per_second = peak * forward_share(true, cores);
  roofline_.wide_attention_grad_flops_per_second = peak * gradient_share(true, cores);
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
  const double own = own_attention_flops_per_second(attention, roofline_);
  if (key.form.by_library) {
    const LibraryAttention library{.is_gradient = is_gradient,
                                   .segment_tokens = attention.segment_tokens,
                                   .head_dim = attention.head_dim};
    return std::max(own, roofline_.library_attention_peak * share_of_peak(library)) /
           adjusted_attention_factor(key);
  }
  if (key.form.tensor_cores) return own / adjusted_attention_factor(key);
  // Off the tensor cores it is taken to reach the shares that an H100 reached on them, of the f32
  // peak, of which an instruction does two operations.
  const double f32_peak = 2 * roofline_.instructions_per_second / (kStarted * kClock);
  return f32_peak * (is_gradient ? kGradientShare : kForwardShare) *
         (attention.head_dim > kWidestOfWholeWarps ? kShareOfHalfWarps : 1.0);
}

}  // namespace snug::plan
