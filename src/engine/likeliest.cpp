#include "engine/likeliest.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

namespace snug::engine {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();
// A block is a few vectors wide: its maximum is taken lane by lane, in lanes that the compiler
// keeps in registers.
constexpr size_t kLanes = 16;
constexpr size_t kBlock = 64;

// A comparison with NaN is false, so NaN in `a` is passed over.
float larger(float a, float b) { return a > b ? a : b; }

float largest(std::span<const float> block) {
  std::array<float, kLanes> lanes;
  lanes.fill(kNone);
  size_t i = 0;
  for (; i + kLanes <= block.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = larger(block[i + lane], lanes[lane]);
  float most = kNone;
  for (; i < block.size(); ++i) most = larger(block[i], most);
  for (const float lane : lanes) most = larger(lane, most);
  return most;
}

}  // namespace

void BlockMaxima::find(std::span<const float> logits) {
  logits_ = logits;
  maxima_.resize((logits.size() + kBlock - 1) / kBlock);
  for (size_t i = 0; i < maxima_.size(); ++i)
    maxima_[i] = largest(logits.subspan(i * kBlock, std::min(kBlock, logits.size() - i * kBlock)));
}

int32_t BlockMaxima::likeliest() const {
  const auto block = std::ranges::max_element(maxima_);
  if (block == maxima_.end() || *block == kNone) return -1;
  const auto begin = logits_.begin() + (block - maxima_.begin()) * static_cast<int64_t>(kBlock);
  return static_cast<int32_t>(std::find(begin, logits_.end(), *block) - logits_.begin());
}

// At least `count` logits are as large as the count-th largest block maximum, since each block's
// maximum is one logit.
float BlockMaxima::bound(size_t count) {
  if (count > maxima_.size()) return kNone;
  scratch_ = maxima_;
  const auto at = scratch_.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(scratch_.begin(), at, scratch_.end(), std::greater<>());
  return *at;
}

void BlockMaxima::all_from(float least, std::vector<Candidate>& candidates) const {
  candidates.clear();
  for (size_t block = 0; block < maxima_.size(); ++block) {
    if (!(maxima_[block] >= least) || maxima_[block] == kNone) continue;
    const size_t end = std::min((block + 1) * kBlock, logits_.size());
    for (size_t i = block * kBlock; i < end; ++i)
      if (logits_[i] >= least && logits_[i] > kNone)
        candidates.push_back({logits_[i], static_cast<int32_t>(i)});
  }
}

std::ptrdiff_t BlockMaxima::sort_likeliest(size_t count, std::vector<Candidate>& candidates) {
  if (count == 0) {
    candidates.clear();
    return 0;
  }
  all_from(bound(count), candidates);
  const auto kept = static_cast<std::ptrdiff_t>(std::min(count, candidates.size()));
  std::partial_sort(candidates.begin(), candidates.begin() + kept, candidates.end(), is_likelier);
  return kept;
}

void BlockMaxima::likeliest(size_t count, std::vector<Candidate>& candidates) {
  candidates.resize(static_cast<size_t>(sort_likeliest(count, candidates)));
}

void BlockMaxima::likeliest_and_equals(size_t count, std::vector<Candidate>& candidates) {
  const std::ptrdiff_t kept = sort_likeliest(count, candidates);
  if (kept == 0) return candidates.clear();
  const auto rest = candidates.begin() + kept;
  const double last = (rest - 1)->weight;
  const auto end = std::partition(
      rest, candidates.end(), [&](const Candidate& candidate) { return candidate.weight == last; });
  std::sort(rest, end, is_likelier);
  candidates.erase(end, candidates.end());
}

}  // namespace snug::engine
