// Stages: compute the lower bound; for several orders of blocks, place every block at the lowest
// offset that is free of placed blocks living at the same time; keep the best result. Dynamic
// storage allocation is NP-hard, but on training programs, whose saved activations form a stack,
// these orders reach the bound.
#include "passes/memory/place.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

namespace snug::passes {
namespace {

struct Taken {
  int64_t begin;
  int64_t end;
};

struct Placed {
  int32_t first;
  int32_t last;
  Taken bytes;
};

int32_t horizon(std::span<const LiveRange> blocks) {
  int32_t last = 0;
  for (const LiveRange& block : blocks) last = std::max(last, block.last);
  return last + 1;
}

// Adds a range to disjoint ranges in ascending order; ranges that touch are merged.
void add_range(std::vector<Taken>& ranges, Taken range) {
  const auto first =
      std::ranges::lower_bound(ranges, range.begin, {}, [](const Taken& each) { return each.end; });
  auto last = first;
  for (; last != ranges.end() && last->begin <= range.end; ++last) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
  }
  ranges.insert(ranges.erase(first, last), range);
}

// The live ranges placed so far, in buckets of time. Of ranges that live throughout a bucket, or
// that begin within a series of buckets (there may be thousands of saved activations), only the
// bytes are kept: most of these adjoin and merge.
class PlacedRanges {
 public:
  explicit PlacedRanges(int32_t steps)
      : width_(std::max<int32_t>(1, steps / 512)),
        buckets_(static_cast<size_t>(steps / width_ + 1)),
        born_(2 * buckets_.size()) {}

  void add(const LiveRange& block, int64_t offset) {
    const Placed placed{block.first, block.last, {offset, offset + block.bytes}};
    const auto begin = static_cast<size_t>(block.first / width_);
    buckets_[begin].born.push_back(placed);
    for (size_t node = begin + buckets_.size(); node > 0; node /= 2)
      add_range(born_[node], placed.bytes);
    for (size_t b = begin; b <= static_cast<size_t>(block.last / width_); ++b) {
      const auto first_step = static_cast<int32_t>(b) * width_;
      if (block.first <= first_step && block.last >= first_step + width_ - 1)
        add_range(buckets_[b].throughout, placed.bytes);
      else
        buckets_[b].partly.push_back(placed);
    }
  }

  // The byte ranges that block a range, in ascending order: of ranges that live when it begins, or
  // that begin during its life.
  void in_the_way(const LiveRange& wanted, std::vector<Taken>& ranges) const {
    const auto begin = static_cast<size_t>(wanted.first / width_);
    ranges = buckets_[begin].throughout;
    const auto keep_overlapping = [&](const std::vector<Placed>& list) {
      for (const Placed& placed : list)
        if (placed.first <= wanted.last && placed.last >= wanted.first)
          ranges.push_back(placed.bytes);
    };
    keep_overlapping(buckets_[begin].partly);
    const auto end = static_cast<size_t>(wanted.last / width_);
    if (end > begin) {
      add_born(begin + 1, end, ranges);
      keep_overlapping(buckets_[end].born);
    }
    std::sort(ranges.begin(), ranges.end(),
              [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
  }

 private:
  struct Bucket {
    std::vector<Taken> throughout;  // bytes of ranges that live during the whole bucket
    std::vector<Placed> partly;     // ranges that live during part of the bucket
    std::vector<Placed> born;       // ranges that begin in the bucket
  };

  // Adds the bytes of ranges that begin in buckets [begin, end), from the largest tree nodes
  // inside.
  void add_born(size_t begin, size_t end, std::vector<Taken>& ranges) const {
    const auto add = [&](size_t node) {
      ranges.insert(ranges.end(), born_[node].begin(), born_[node].end());
    };
    for (begin += buckets_.size(), end += buckets_.size(); begin < end; begin /= 2, end /= 2) {
      if (begin % 2 == 1) add(begin++);
      if (end % 2 == 1) add(--end);
    }
  }

  int32_t width_;
  std::vector<Bucket> buckets_;
  // A binary tree over the buckets: bucket b is node buckets_.size() + b, and a node's parent has
  // half its index. Each node has the bytes of the ranges that begin in its buckets.
  std::vector<std::vector<Taken>> born_;
};

int64_t lowest_gap(const std::vector<Taken>& ranges, int64_t bytes) {
  int64_t offset = 0;
  for (const Taken& taken : ranges) {
    if (taken.begin - offset >= bytes) return offset;
    offset = std::max(offset, taken.end);
  }
  return offset;
}

// The start of the smallest gap that fits, which leaves large gaps whole.
int64_t tightest_gap(const std::vector<Taken>& ranges, int64_t bytes) {
  int64_t offset = 0;
  int64_t best = -1;
  int64_t best_gap = std::numeric_limits<int64_t>::max();
  for (const Taken& taken : ranges) {
    const int64_t gap = taken.begin - offset;
    if (gap >= bytes && gap < best_gap) {
      best = offset;
      best_gap = gap;
    }
    offset = std::max(offset, taken.end);
  }
  return best >= 0 ? best : offset;
}

// Returns nothing where the placement would reach the limit.
std::optional<Placement> place_in_order(std::span<const LiveRange> blocks,
                                        const std::vector<size_t>& order, bool tight,
                                        int64_t limit) {
  Placement placement;
  placement.offsets.assign(blocks.size(), 0);
  PlacedRanges placed(horizon(blocks));
  std::vector<Taken> ranges;
  for (const size_t index : order) {
    const LiveRange& block = blocks[index];
    placed.in_the_way(block, ranges);
    const int64_t offset =
        tight ? tightest_gap(ranges, block.bytes) : lowest_gap(ranges, block.bytes);
    placement.offsets[index] = offset;
    placement.bytes = std::max(placement.bytes, offset + block.bytes);
    if (placement.bytes >= limit) return std::nullopt;
    placed.add(block, offset);
  }
  return placement;
}

using Score = std::function<double(const LiveRange&)>;

std::vector<size_t> descending(std::span<const LiveRange> blocks, const Score& score) {
  std::vector<double> scores;
  scores.reserve(blocks.size());
  for (const LiveRange& block : blocks) scores.push_back(score(block));
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

}  // namespace

int64_t peak_live_bytes(std::span<const LiveRange> blocks) {
  if (blocks.empty()) return 0;
  std::vector<int64_t> change(static_cast<size_t>(horizon(blocks)) + 1, 0);
  for (const LiveRange& block : blocks) {
    change[static_cast<size_t>(block.first)] += block.bytes;
    change[static_cast<size_t>(block.last) + 1] -= block.bytes;
  }
  int64_t live = 0;
  int64_t peak = 0;
  for (const int64_t delta : change) peak = std::max(peak, live += delta);
  return peak;
}

// A placement within this fraction (1 / kNear) of the lower bound is accepted: for large jobs,
// trying the other orders would take seconds and save a negligible amount.
constexpr int64_t kNear = 1000;

Placement place(std::span<const LiveRange> blocks) {
  const auto life = [](const LiveRange& b) { return static_cast<double>(b.last - b.first + 1); };
  const auto size = [](const LiveRange& b) { return static_cast<double>(b.bytes); };
  const Score orders[] = {
      [&](const LiveRange& b) { return life(b) * 1e15 + size(b); },
      [&](const LiveRange& b) { return size(b) * 1e6 + life(b); },
      [&](const LiveRange& b) { return life(b) * size(b); },
      [&](const LiveRange& b) { return -static_cast<double>(b.first) * 1e6 + life(b); },
  };
  const int64_t bound = peak_live_bytes(blocks);
  Placement best;
  best.bytes = std::numeric_limits<int64_t>::max();
  for (const Score& score : orders) {
    const std::vector<size_t> order = descending(blocks, score);
    for (const bool tight : {false, true}) {
      if (auto better = place_in_order(blocks, order, tight, best.bytes)) best = std::move(*better);
      if (best.bytes - bound <= bound / kNear) return best;
    }
  }
  return best;
}

}  // namespace snug::passes
