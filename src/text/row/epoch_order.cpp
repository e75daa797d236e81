#include "text/row/epoch_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "text/row/document_cycle.h"

namespace snug::text {
namespace {

// Keeps this stream of random numbers apart from others of the same seed.
constexpr auto kSite = static_cast<uint32_t>(base::hash_name("row order", 9));

// Uniform in [0, bound): the high half of a 64-bit word times the bound.
uint32_t below(uint32_t bound, uint32_t index, int64_t epoch, uint64_t seed) {
  const auto words =
      base::philox({index, static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32), kSite},
                   {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t low = uint64_t{words[0]} * bound;
  const uint64_t high = uint64_t{words[1]} * bound;
  return static_cast<uint32_t>((high + (low >> 32)) >> 32);
}

int64_t groups_of_epoch(int64_t groups, const std::vector<EpochPart>& parts) {
  if (parts.empty()) return groups;
  int64_t there = 0;
  int64_t taken = 0;
  for (const EpochPart& part : parts) {
    SNUG_CHECK(part.groups >= 0 && part.taken >= 0 && (part.groups > 0 || part.taken == 0),
               "{} of {} groups", part.taken, part.groups);
    there += part.groups;
    taken += part.taken;
  }
  SNUG_CHECK_EQ(there, groups);
  SNUG_CHECK(taken <= kMostGroups, "{} groups in an epoch", taken);
  return taken;
}

}  // namespace

EpochOrder::EpochOrder(const DocumentStore& documents, const RowOptions& options)
    : documents_(documents), options_(options) {
  SNUG_CHECK(options.group >= 1 && documents.size() % options.group == 0,
             "{} documents in groups of {}", documents.size(), options.group);
  set_rows(options.max_length, options.max_segments);
  order_.resize(
      static_cast<size_t>(groups_of_epoch(documents.size() / options.group, options.parts)));
  row_begin_.resize(order_.size() + 1);
  waiting_.reserve(kWaiting);
}

void EpochOrder::set_rows(const PerStream<int32_t>& max_length, int32_t max_segments) {
  for (const TokenStream stream : documents_.streams())
    SNUG_CHECK(int64_t{documents_.longest()[stream]} * options_.group <= max_length[stream],
               "a document of {} tokens, {} in a group, in rows of {}",
               documents_.longest()[stream], options_.group, max_length[stream]);
  SNUG_CHECK(max_segments >= options_.group, "max_segments {}", max_segments);
  options_.max_length = max_length;
  options_.max_segments = max_segments;
  epoch_ = -1;
  rows_ = 0;
}

void EpochOrder::make(int64_t epoch) {
  epoch_ = epoch;
  take_documents();
  if (options_.shuffle) shuffle();
  if (options_.packing) return pack();
  rows_ = static_cast<int64_t>(order_.size());
  std::iota(row_begin_.begin(), row_begin_.end(), 0);
}

bool EpochOrder::takes_each_once() const {
  return std::ranges::all_of(options_.parts,
                             [](const EpochPart& part) { return part.taken == part.groups; });
}

bool EpochOrder::takes_alike() const {
  return std::ranges::all_of(options_.parts, [](const EpochPart& part) {
    return part.groups == 0 || part.taken % part.groups == 0;
  });
}

void EpochOrder::take_documents() {
  if (options_.parts.empty()) return std::iota(order_.begin(), order_.end(), 0);
  int64_t begin = 0;
  size_t at = 0;
  for (size_t part = 0; part < options_.parts.size(); ++part) {
    const auto taken = static_cast<size_t>(options_.parts[part].taken);
    take_part(part, begin, std::span(order_).subspan(at, taken));
    begin += options_.parts[part].groups;
    at += taken;
  }
}

// Cycle by cycle: the end of one that an epoch before began, whole ones, and the beginning of one.
// Those that are whole need no order of their own, since the epoch is shuffled.
void EpochOrder::take_part(size_t part, int64_t begin, std::span<int32_t> taken) const {
  const auto groups = static_cast<uint64_t>(options_.parts[part].groups);
  uint64_t place = static_cast<uint64_t>(epoch_) * taken.size();
  while (!taken.empty()) {
    const auto from = static_cast<int64_t>(place % groups);
    const size_t count = std::min(groups - place % groups, taken.size());
    const std::span<int32_t> of_cycle = taken.first(count);
    std::iota(of_cycle.begin(), of_cycle.end(), static_cast<int32_t>(from));
    if (options_.shuffle && count < groups) {
      const DocumentCycle cycle(options_.parts[part].groups, options_.seed,
                                static_cast<int64_t>(part), place / groups);
      for (int32_t& group : of_cycle) group = static_cast<int32_t>(cycle.at(group));
    }
    for (int32_t& group : of_cycle) group += static_cast<int32_t>(begin);
    taken = taken.subspan(count);
    place += count;
  }
}

// Fisher and Yates, from the end.
void EpochOrder::shuffle() {
  for (auto i = static_cast<uint32_t>(order_.size()); i > 1; --i)
    std::swap(order_[i - 1], order_[below(i, i, epoch_, options_.seed)]);
}

bool EpochOrder::takes(int32_t group, Filled& row) const {
  if (row.segments + options_.group > options_.max_segments) return false;
  PerStream<int32_t> tokens = row.tokens;
  for (const TokenStream stream : documents_.streams()) {
    for (int32_t i = 0; i < options_.group; ++i)
      tokens[stream] += documents_.length(group * options_.group + i, stream);
    if (tokens[stream] > options_.max_length[stream]) return false;
  }
  row = {tokens, row.segments + options_.group};
  return true;
}

// Whether another group of documents may fit.
bool EpochOrder::has_room(const Filled& row) const {
  const auto is_open = [&](TokenStream stream) {
    return row.tokens[stream] < options_.max_length[stream];
  };
  return row.segments + options_.group <= options_.max_segments &&
         std::ranges::all_of(documents_.streams(), is_open);
}

// Packs in place: what is written was read before, so writing never overtakes reading.
void EpochOrder::pack() {
  const auto count = static_cast<int32_t>(order_.size());
  int32_t read = 0;
  int32_t write = 0;
  rows_ = 0;
  waiting_.clear();
  while (read < count || !waiting_.empty()) {
    row_begin_[rows_++] = write;
    Filled row{.tokens = documents_.longest().map([](int32_t) { return int32_t{0}; })};
    size_t kept = 0;
    for (const int32_t document : waiting_) {
      if (takes(document, row)) {
        order_[write++] = document;
      } else {
        waiting_[kept++] = document;
      }
    }
    waiting_.resize(kept);
    while (read < count && has_room(row)) {
      const int32_t document = order_[read];
      if (takes(document, row)) {
        order_[write++] = document;
      } else if (waiting_.size() < static_cast<size_t>(kWaiting)) {
        waiting_.push_back(document);
      } else {
        break;
      }
      ++read;
    }
  }
  row_begin_[rows_] = write;
  SNUG_CHECK_EQ(write, count);
}

int64_t EpochOrder::host_bytes() const {
  return static_cast<int64_t>((order_.capacity() + row_begin_.capacity() + waiting_.capacity()) *
                                  sizeof(int32_t) +
                              options_.parts.capacity() * sizeof(EpochPart));
}

}  // namespace snug::text
