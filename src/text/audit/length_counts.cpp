#include "text/audit/length_counts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

namespace snug::text {
namespace {

// Each octave from 256 = 2^8 on has 2^7 steps: a step is at most 1/128 of its lengths.
constexpr int kExactBits = 8;
constexpr int kStepBits = 7;
constexpr int64_t kExact = int64_t{1} << kExactBits;

size_t step_of(int64_t length) {
  if (length < kExact) return static_cast<size_t>(length);
  const int octave = static_cast<int>(std::bit_width(static_cast<uint64_t>(length))) - 1;
  const int64_t within = (length >> (octave - kStepBits)) - (int64_t{1} << kStepBits);
  return static_cast<size_t>(kExact + (int64_t{octave - kExactBits} << kStepBits) + within);
}

// The longest length of a step.
int64_t last_of(size_t step) {
  const auto place = static_cast<int64_t>(step);
  if (place < kExact) return place;
  const int64_t octave = ((place - kExact) >> kStepBits) + kExactBits;
  const int64_t within = (place - kExact) & ((int64_t{1} << kStepBits) - 1);
  return ((((int64_t{1} << kStepBits) + within + 1) << (octave - kStepBits))) - 1;
}

// The least of 1, 2, 5, 10, 20, ... that is not below.
int64_t round_width(int64_t least) {
  for (int64_t power = 1;; power *= 10)
    for (const int64_t digit : {1, 2, 5})
      if (digit * power >= least) return digit * power;
}

}  // namespace

void LengthCounts::add(int64_t length) {
  const size_t step = step_of(std::max<int64_t>(0, length));
  if (step >= counts_.size()) counts_.resize(step + 1);
  ++counts_[step];
  ++size_;
  sum_ += length;
  longest_ = std::max(longest_, length);
}

void LengthCounts::add_all(const LengthCounts& other) {
  counts_.resize(std::max(counts_.size(), other.counts_.size()));
  for (size_t step = 0; step < other.counts_.size(); ++step) counts_[step] += other.counts_[step];
  size_ += other.size_;
  sum_ += other.sum_;
  longest_ = std::max(longest_, other.longest_);
}

double LengthCounts::mean() const {
  return size_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(size_);
}

int64_t LengthCounts::holding(double share) const {
  const auto wanted = static_cast<int64_t>(std::ceil(share * static_cast<double>(size_)));
  int64_t held = 0;
  for (size_t step = 0; step < counts_.size(); ++step) {
    held += counts_[step];
    if (held >= wanted) return std::min(last_of(step), longest_);
  }
  return longest_;
}

int64_t LengthCounts::longer_than(int64_t length) const {
  int64_t count = 0;
  for (size_t step = counts_.size(); step-- > 0 && std::min(last_of(step), longest_) > length;)
    count += counts_[step];
  return count;
}

std::vector<LengthCounts::Bin> LengthCounts::bins(int64_t most) const {
  std::vector<Bin> bins;
  if (size_ == 0) return bins;
  const int64_t usual = holding(0.99);
  const int64_t width = round_width((usual + most) / most);
  for (size_t step = 0; step < counts_.size(); ++step) {
    if (counts_[step] == 0) continue;
    const int64_t bin = std::min(last_of(step) / width, most - 1);
    if (bins.empty()) bins.push_back({bin * width, (bin + 1) * width - 1, 0});
    while (bins.back().first < bin * width)
      bins.push_back({bins.back().last + 1, bins.back().last + width, 0});
    bins.back().count += counts_[step];
  }
  bins.back().last = std::max(bins.back().last, longest_);
  return bins;
}

}  // namespace snug::text
