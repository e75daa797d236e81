// Stages: the lower bound; for each order of blocks, put every block at the lowest offset where no
// placed block that lives at the same time is in the way; keep the best. Dynamic storage allocation
// is NP-hard; on training programs, whose saved activations form a stack, these orders reach the
// bound.
#include "passes/place.h"

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

int32_t horizon(std::span<const Block> blocks) {
  int32_t last = 0;
  for (const Block& block : blocks) last = std::max(last, block.last);
  return last + 1;
}

// Adds a range to disjoint ones in ascending order; those that touch become one.
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

// Blocks placed so far, by buckets of time. Of those that live throughout a bucket, which may be
// thousands of saved activations, only their bytes are kept there, which adjoin
// mostly.
class Timeline {
 public:
  explicit Timeline(int32_t steps)
      : width_(std::max<int32_t>(1, steps / 512)),
        buckets_(static_cast<size_t>(steps / width_ + 1)) {}

  void add(const Block& block, int64_t offset) {
    const Placed placed{block.first, block.last, {offset, offset + block.bytes}};
    const auto begin = static_cast<size_t>(block.first / width_);
    buckets_[begin].born.push_back(placed);
    for (size_t b = begin; b <= static_cast<size_t>(block.last / width_); ++b) {
      const auto first_step = static_cast<int32_t>(b) * width_;
      if (block.first <= first_step && block.last >= first_step + width_ - 1)
        add_range(buckets_[b].throughout, placed.bytes);
      else
        buckets_[b].partly.push_back(placed);
    }
  }

  // Byte ranges in the way of a block, ascending: of what lives when it begins or is born later.
  void in_the_way(const Block& wanted, std::vector<Taken>& ranges) const {
    const auto begin = static_cast<size_t>(wanted.first / width_);
    ranges = buckets_[begin].throughout;
    const auto keep_overlapping = [&](const std::vector<Placed>& list) {
      for (const Placed& placed : list)
        if (placed.first <= wanted.last && placed.last >= wanted.first)
          ranges.push_back(placed.bytes);
    };
    keep_overlapping(buckets_[begin].partly);
    for (size_t b = begin + 1; b <= static_cast<size_t>(wanted.last / width_); ++b)
      keep_overlapping(buckets_[b].born);
    std::sort(ranges.begin(), ranges.end(),
              [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
  }

 private:
  struct Bucket {
    std::vector<Taken> throughout;  // by what lives all its time
    std::vector<Placed> partly;     // what lives at some time of it
    std::vector<Placed> born;       // what begins in it
  };

  int32_t width_;
  std::vector<Bucket> buckets_;
};

int64_t lowest_gap(const std::vector<Taken>& ranges, int64_t bytes) {
  int64_t offset = 0;
  for (const Taken& taken : ranges) {
    if (taken.begin - offset >= bytes) return offset;
    offset = std::max(offset, taken.end);
  }
  return offset;
}

// The smallest gap that fits, so that large gaps stay whole.
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

// Nothing, where it would not stay below the limit.
std::optional<Placement> place_in_order(std::span<const Block> blocks,
                                        const std::vector<size_t>& order, bool tight,
                                        int64_t limit) {
  Placement placement;
  placement.offsets.assign(blocks.size(), 0);
  Timeline timeline(horizon(blocks));
  std::vector<Taken> ranges;
  for (const size_t index : order) {
    const Block& block = blocks[index];
    timeline.in_the_way(block, ranges);
    const int64_t offset =
        tight ? tightest_gap(ranges, block.bytes) : lowest_gap(ranges, block.bytes);
    placement.offsets[index] = offset;
    placement.bytes = std::max(placement.bytes, offset + block.bytes);
    if (placement.bytes >= limit) return std::nullopt;
    timeline.add(block, offset);
  }
  return placement;
}

using Score = std::function<double(const Block&)>;

std::vector<size_t> descending(std::span<const Block> blocks, const Score& score) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return score(blocks[a]) > score(blocks[b]); });
  return order;
}

}  // namespace

int64_t peak_live_bytes(std::span<const Block> blocks) {
  if (blocks.empty()) return 0;
  std::vector<int64_t> change(static_cast<size_t>(horizon(blocks)) + 1, 0);
  for (const Block& block : blocks) {
    change[static_cast<size_t>(block.first)] += block.bytes;
    change[static_cast<size_t>(block.last) + 1] -= block.bytes;
  }
  int64_t live = 0;
  int64_t peak = 0;
  for (const int64_t delta : change) peak = std::max(peak, live += delta);
  return peak;
}

// A placement this near the bound, one part in so many, is taken: of large jobs the other orders
// would take seconds to save nothing that is felt.
constexpr int64_t kNear = 1000;

Placement place(std::span<const Block> blocks) {
  const auto life = [](const Block& b) { return static_cast<double>(b.last - b.first + 1); };
  const auto size = [](const Block& b) { return static_cast<double>(b.bytes); };
  const Score orders[] = {
      [&](const Block& b) { return life(b) * 1e15 + size(b); },
      [&](const Block& b) { return size(b) * 1e6 + life(b); },
      [&](const Block& b) { return life(b) * size(b); },
      [&](const Block& b) { return -static_cast<double>(b.first) * 1e6 + life(b); },
  };
  const int64_t bound = peak_live_bytes(blocks);
  Placement best;
  best.bytes = std::numeric_limits<int64_t>::max();
  for (const Score& order : orders)
    for (const bool tight : {false, true}) {
      if (auto better = place_in_order(blocks, descending(blocks, order), tight, best.bytes))
        best = std::move(*better);
      if (best.bytes - bound <= bound / kNear) return best;
    }
  return best;
}

}  // namespace snug::passes
