// exp(x) for x up to 0: x = n log(2) + r with |r| <= log(2) / 2, exp(r) by its Taylor series up to
// r^12 (the next term is below 2e-16), and n is added to the exponent. There is no branch, so that
// loops over it become vector instructions.
#include "engine/token_weights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

namespace snug::engine {
namespace {

struct Scaling {
  double most = 0;
  double scale = 1;
};

// 1 / n! for n from 12 to 0.
constexpr std::array kTaylor{1.0 / 479001600,
                             1.0 / 39916800,
                             1.0 / 3628800,
                             1.0 / 362880,
                             1.0 / 40320,
                             1.0 / 5040,
                             1.0 / 720,
                             1.0 / 120,
                             1.0 / 24,
                             1.0 / 6,
                             0.5,
                             1.0,
                             1.0};

// 0 where x is below -708, whose exponent would not be that of a normal number, and for NaN.
[[gnu::always_inline]] inline double exp_below_one(double x) {
  constexpr double kLog2OfE = 1.4426950408889634074;
  constexpr double kLogOf2High = 6.93147180369123816490e-01;  // its products with n are exact
  constexpr double kLogOf2Low = 1.90821492927058770002e-10;
  constexpr double kToInteger = 0x1.8p52;  // its sum with a number has no room for a fraction
  constexpr uint64_t kSign = uint64_t{1} << 63;
  // As integers, negative numbers are ordered by size; those beyond -708 and NaN come last.
  const uint64_t size = std::bit_cast<uint64_t>(x) | kSign;
  const uint64_t mask = -static_cast<uint64_t>(size <= std::bit_cast<uint64_t>(-708.0));
  const double shifted = x * kLog2OfE + kToInteger;
  const double n = shifted - kToInteger;
  const double r = (x - n * kLogOf2High) - n * kLogOf2Low;
  double series = kTaylor[0];
  for (size_t i = 1; i < kTaylor.size(); ++i) series = series * r + kTaylor[i];
  const uint64_t exponent = std::bit_cast<uint64_t>(shifted) << 52;
  return std::bit_cast<double>((std::bit_cast<uint64_t>(series) + exponent) & mask);
}

[[gnu::always_inline]] inline void weigh_block(const float* logits, Scaling by, double* weights) {
  for (size_t i = 0; i < TokenWeights::kBlock; ++i)
    weights[i] = exp_below_one((static_cast<double>(logits[i]) - by.most) * by.scale);
}

using WeighBlock = void (*)(const float* logits, Scaling by, double* weights);

// Without wide vectors the library's exp is faster.
void weigh_plainly(const float* logits, Scaling by, double* weights) {
  for (size_t i = 0; i < TokenWeights::kBlock; ++i) {
    const double x = (static_cast<double>(logits[i]) - by.most) * by.scale;
    weights[i] = x >= -708.0 ? std::exp(x) : 0;
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void weigh_avx2(const float* logits, Scaling by,
                                                    double* weights) {
  weigh_block(logits, by, weights);
}
__attribute__((target("avx512f,avx512dq,avx512vl"))) void weigh_avx512(const float* logits,
                                                                       Scaling by,
                                                                       double* weights) {
  weigh_block(logits, by, weights);
}

WeighBlock best_weighing() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return weigh_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return weigh_avx2;
  return weigh_plainly;
}
#else
WeighBlock best_weighing() { return weigh_plainly; }
#endif

// Ascending integers for ascending floats, and the way back.
int32_t place_of(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits >= 0 ? bits : std::numeric_limits<int32_t>::min() - bits;
}
float float_at(int32_t place) {
  return std::bit_cast<float>(place >= 0 ? place : std::numeric_limits<int32_t>::min() - place);
}

template <typename Use>
void for_each_block(std::span<const float> logits, const Use& use) {
  for (size_t begin = 0; begin < logits.size(); begin += TokenWeights::kBlock)
    use(logits.subspan(begin, std::min(TokenWeights::kBlock, logits.size() - begin)));
}

}  // namespace

TokenWeights::TokenWeights(double most, double temperature)
    : most_(most), scale_(std::min(1 / temperature, std::numeric_limits<double>::max())) {}

double TokenWeights::of(float logit) const {
  return std::exp((static_cast<double>(logit) - most_) * scale_);
}

void TokenWeights::of(std::span<const float> block, double* weights) const {
  static const WeighBlock weigh = best_weighing();
  if (block.size() == kBlock) return weigh(block.data(), {most_, scale_}, weights);
  std::array<float, kBlock> whole;
  whole.fill(-std::numeric_limits<float>::infinity());
  std::ranges::copy(block, whole.begin());
  std::array<double, kBlock> all;
  weigh(whole.data(), {most_, scale_}, all.data());
  std::copy_n(all.begin(), block.size(), weights);
}

double TokenWeights::block_sum(std::span<const float> block) const {
  std::array<double, kBlock> weights;
  of(block, weights.data());
  return std::accumulate(weights.begin(), weights.begin() + std::ssize(block), 0.0);
}

double TokenWeights::sum(std::span<const float> logits) const {
  std::vector<double> block_sums;
  return sum(logits, block_sums);
}

// A device waits for this sum between two tokens, and one thread takes 0.15 ms for the row of a
// large vocabulary. Blocks are added up in order, so the bits do not depend on the threads.
double TokenWeights::sum(std::span<const float> logits, std::vector<double>& block_sums) const {
  constexpr int64_t kBlocksForThreads = 512;  // some 30 us
  const auto blocks = static_cast<int64_t>((logits.size() + kBlock - 1) / kBlock);
  block_sums.resize(static_cast<size_t>(blocks));
#pragma omp parallel for schedule(static) if (blocks >= kBlocksForThreads)
  for (int64_t i = 0; i < blocks; ++i) {
    const size_t begin = static_cast<size_t>(i) * kBlock;
    block_sums[static_cast<size_t>(i)] =
        block_sum(logits.subspan(begin, std::min(kBlock, logits.size() - begin)));
  }
  return std::accumulate(block_sums.begin(), block_sums.end(), 0.0);
}

double TokenWeights::mean_distance(std::span<const float> logits) const {
  double total = 0;
  double moment = 0;
  std::array<double, kBlock> weights;
  for_each_block(logits, [&](std::span<const float> block) {
    of(block, weights.data());
    for (size_t i = 0; i < block.size(); ++i) {
      total += weights[i];
      // A token that cannot come is infinitely far away.
      if (weights[i] > 0) moment += weights[i] * distance(block[i]);
    }
  });
  return moment / total;
}

float TokenWeights::least_logit(double share) const {
  const auto most = static_cast<float>(most_);
  int32_t above = place_of(most);  // its weight is 1
  int32_t below = place_of(std::numeric_limits<float>::lowest());
  if (of(float_at(below)) >= share) return -std::numeric_limits<float>::infinity();
  while (int64_t{above} - below > 1) {
    const auto middle = static_cast<int32_t>((int64_t{above} + below) / 2);
    (of(float_at(middle)) >= share ? above : below) = middle;
  }
  return float_at(above);
}

}  // namespace snug::engine
