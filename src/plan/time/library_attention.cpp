// A rate is read off the table by a straight line between two lengths. What the table does not have
// is taken to be slow: a segment below the first length takes as long a token as one of that
// length, one above the last is no faster, and a smaller head takes as long a score as one of 128.
// (Of heads of 64, FlashAttention-3's forward pass is public: 371 TFLOP/s at 2048, 473 at 16,384;
// here they are given 194 and 269.) Wider heads have a share of their own, which is expected and
// was not measured here.
#include "plan/time/library_attention.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace snug::plan {
namespace {

struct MeasuredRates {
  double segment_tokens;
  double forward;
  double gradient;
};

// TFLOP/s of cuDNN 9.19 on an H200 (peak 989): bf16, causal, 64 heads of 128 on 8 of keys
// (benchmarks of NVIDIA/cudnn-frontend). Other cards are taken to reach the same shares. Within
// whole steps of 8B on an H100, whose power is then all taken, cuDNN 9.14 reached 0.80 of that
// forward and 0.78 in the gradient (515 and 421 TFLOP/s at 8192, means of three profiles;
// bench/results/gpu.md).
constexpr double kPeak = 989;
constexpr double kForwardInSteps = 0.80;
constexpr double kGradientInSteps = 0.78;
constexpr double kHeadDim = 128;
// Of heads of 256: 400 TFLOP/s forward and 330 in the gradient at 8192, of the 515 and 421 above.
// Public are 450 to 509 forward, alone on a cool H100 (cuDNN of 2024; Shah et al. 2024, figure 5).
constexpr double kWideShare = 0.78;
constexpr std::array<MeasuredRates, 4> kMeasured{{
    {2048, 484, 370},
    {4096, 591, 474},
    {8192, 644, 541},
    {16384, 673, 579},
}};

double rate(const MeasuredRates& measured, bool is_gradient) {
  return is_gradient ? kGradientInSteps * measured.gradient : kForwardInSteps * measured.forward;
}

double rate_at(double segment_tokens, bool is_gradient) {
  const MeasuredRates& first = kMeasured.front();
  if (segment_tokens < first.segment_tokens)
    return rate(first, is_gradient) * segment_tokens / first.segment_tokens;
  const auto above = std::ranges::find_if(
      kMeasured, [&](const MeasuredRates& each) { return each.segment_tokens > segment_tokens; });
  if (above == kMeasured.end()) return rate(kMeasured.back(), is_gradient);
  const MeasuredRates& below = *std::prev(above);
  const double part =
      (segment_tokens - below.segment_tokens) / (above->segment_tokens - below.segment_tokens);
  return rate(below, is_gradient) + part * (rate(*above, is_gradient) - rate(below, is_gradient));
}

}  // namespace

double share_of_peak(const LibraryAttention& attention) {
  return rate_at(attention.segment_tokens, attention.is_gradient) / kPeak *
         (attention.head_dim > kHeadDim ? kWideShare : attention.head_dim / kHeadDim);
}

}  // namespace snug::plan
