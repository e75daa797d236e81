// In which order epochs go through a mix of data.
#include "text/row/epoch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/error.h"
#include "text/row/document_cycle.h"
#include "text/row/row_source.h"

namespace snug::text {
namespace {

DocumentStore documents_for(const std::vector<EpochPart>& parts, int32_t group, unsigned seed) {
  std::mt19937 random(seed);
  int64_t groups = 0;
  for (const EpochPart& part : parts) groups += part.groups;
  DocumentStore store;
  for (int64_t i = 0; i < groups * group; ++i) {
    const size_t length = 2 + random() % 19;
    store.add(std::vector<int32_t>(length, static_cast<int32_t>(i)),
              std::vector<uint8_t>(length, 1));
  }
  store.finish();
  return store;
}

RowOptions mixed(const std::vector<EpochPart>& parts) {
  RowOptions result;
  result.max_length = 60;
  result.max_segments = 16;
  result.seed = 42;
  result.parts = parts;
  return result;
}

// The documents of an epoch, as they come.
std::vector<int32_t> epoch_of(EpochOrder& order, int64_t epoch) {
  order.make(epoch);
  std::vector<int32_t> documents;
  for (int32_t place = order.first(0); place < order.end(order.rows() - 1); ++place)
    documents.push_back(order.document(place));
  return documents;
}

const std::vector<EpochPart> kMix{{7, 3},  {5, 5}, {4, 11}, {0, 0},
                                  {6, 12}, {3, 0}, {1, 1},  {40, 1}};

void expect_counts(const std::map<int32_t, int64_t>& counts, int64_t epochs, int32_t group) {
  int32_t document = 0;
  for (const EpochPart& part : kMix) {
    const int64_t places = epochs * part.taken;
    for (int64_t i = 0; i < part.groups * group; ++i, ++document) {
      const auto found = counts.find(document);
      const int64_t count = found == counts.end() ? 0 : found->second;
      ASSERT_GE(count, places / part.groups) << document << " after " << epochs;
      ASSERT_LE(count, (places + part.groups - 1) / part.groups) << document << " after " << epochs;
    }
  }
}

TEST(EpochOrder, EachDocumentOfAPartComesEquallyOften) {
  for (const int32_t group : {1, 2})
    for (const bool shuffle : {true, false})
      for (const bool packing : {true, false}) {
        const DocumentStore documents = documents_for(kMix, group, 1);
        RowOptions chosen = mixed(kMix);
        chosen.group = group;
        chosen.shuffle = shuffle;
        chosen.packing = packing;
        EpochOrder order(documents, chosen);
        std::map<int32_t, int64_t> counts;
        for (int64_t epoch = 0; epoch < 60; ++epoch) {
          const std::vector<int32_t> taken = epoch_of(order, epoch);
          ASSERT_EQ(static_cast<int64_t>(taken.size()), order.groups() * group);
          for (size_t i = 0; i < taken.size(); ++i) {
            ++counts[taken[i]];
            // Those of a group stay side by side.
            ASSERT_EQ(taken[i] % group, static_cast<int32_t>(i) % group);
            ASSERT_EQ(taken[i] / group, taken[i - i % static_cast<size_t>(group)] / group);
          }
          expect_counts(counts, epoch + 1, group);
        }
      }
}

TEST(EpochOrder, APartThatIsTakenOnceAndNoPartsAreTheSame) {
  const DocumentStore documents = documents_for({{30, 30}}, 2, 2);
  RowOptions chosen = mixed({});
  chosen.group = 2;
  RowOptions parted = chosen;
  parted.parts = {{12, 12}, {0, 0}, {18, 18}};
  EpochOrder plain(documents, chosen);
  EpochOrder order(documents, parted);
  for (const int64_t epoch : {0, 1, 7, 1'000'000})
    EXPECT_EQ(epoch_of(order, epoch), epoch_of(plain, epoch));
  RowSource rows(documents, parted);
  EXPECT_TRUE(rows.options().parts.empty());
  EXPECT_EQ(rows.most_epochs(), RowSource(documents, chosen).most_epochs());
}

// Runs that began before there were parts find it so when they go on.
TEST(EpochOrder, OfASeedAndAnEpochIsWhatItWas) {
  const DocumentStore documents = documents_for({{10, 10}}, 1, 2);
  EpochOrder order(documents, mixed({}));
  EXPECT_EQ(epoch_of(order, 0), (std::vector<int32_t>{7, 0, 9, 1, 5, 6, 2, 3, 4, 8}));
  EXPECT_EQ(epoch_of(order, 3), (std::vector<int32_t>{3, 6, 8, 9, 2, 1, 7, 5, 4, 0}));
}

TEST(EpochOrder, DependsOnTheEpochAloneNotOnThoseMadeBefore) {
  const DocumentStore documents = documents_for(kMix, 1, 3);
  EpochOrder forward(documents, mixed(kMix));
  std::vector<std::vector<int32_t>> epochs;
  for (int64_t epoch = 0; epoch < 40; ++epoch) epochs.push_back(epoch_of(forward, epoch));
  std::mt19937 random(4);
  EpochOrder jumping(documents, mixed(kMix));
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t epoch = random() % 40;
    ASSERT_EQ(epoch_of(jumping, epoch), epochs[static_cast<size_t>(epoch)]);
  }
  RowOptions reseeded = mixed(kMix);
  reseeded.seed = 43;
  EpochOrder other(documents, reseeded);
  EXPECT_NE(epoch_of(other, 0), epochs[0]);
}

TEST(EpochOrder, GoesInTheOrderOfTheFilesWithoutShuffling) {
  const DocumentStore documents = documents_for({{3, 2}, {2, 5}}, 1, 3);
  RowOptions chosen = mixed({{3, 2}, {2, 5}});
  chosen.shuffle = false;
  chosen.packing = false;
  EpochOrder order(documents, chosen);
  EXPECT_EQ(epoch_of(order, 0), (std::vector<int32_t>{0, 1, 3, 4, 3, 4, 3}));
  EXPECT_EQ(epoch_of(order, 1), (std::vector<int32_t>{2, 0, 4, 3, 4, 3, 4}));
  EXPECT_EQ(epoch_of(order, 2), (std::vector<int32_t>{1, 2, 3, 4, 3, 4, 3}));
}

// The documents that an epoch leaves out are not always the same, nor those that go together.
TEST(EpochOrder, CyclesOfAPartDiffer) {
  const DocumentStore documents = documents_for({{100, 50}}, 1, 3);
  EpochOrder order(documents, mixed({{100, 50}}));
  std::set<std::set<int32_t>> halves;
  for (int64_t epoch = 0; epoch < 20; epoch += 2) {
    const std::vector<int32_t> taken = epoch_of(order, epoch);
    halves.insert(std::set<int32_t>(taken.begin(), taken.end()));
  }
  EXPECT_EQ(halves.size(), 10U);
}

// And no less often, so that rows have room for as many.
TEST(EpochOrder, TakesADocumentNoMoreOftenThanIsSaid) {
  EXPECT_EQ(most_times({}), 1);
  for (const EpochPart& part :
       {EpochPart{5, 5}, {5, 15}, {6, 2}, {6, 4}, {7, 3}, {3, 7}, {2, 9}, {9, 8}, {4, 0}}) {
    const std::vector<EpochPart> parts{part, {20, 20}};
    const DocumentStore documents = documents_for(parts, 1, 3);
    EpochOrder order(documents, mixed(parts));
    int64_t most = 0;
    for (int64_t epoch = 0; epoch < 200; ++epoch) {
      const std::vector<int32_t> taken = epoch_of(order, epoch);
      for (const int32_t document : taken)
        most = std::max(most, std::ranges::count(taken, document));
    }
    EXPECT_EQ(most_times(parts), most) << part.taken << " of " << part.groups;
  }
}

TEST(EpochOrder, TakesNoMemoryForAnotherEpoch) {
  const DocumentStore documents = documents_for(kMix, 1, 3);
  RowSource rows(documents, mixed(kMix));
  const int64_t groups = 3 + 5 + 11 + 12 + 1 + 1;
  const auto parts = static_cast<int64_t>(kMix.size() * sizeof(EpochPart));
  const int64_t bytes = 2 * ((2 * groups + 1 + 64) * 4 + parts) + 4096 * 8 + parts;
  EXPECT_EQ(rows.host_bytes(), bytes);
  rows.rows_until(50);
  EXPECT_EQ(rows.host_bytes(), bytes);
}

// Resuming at any row reads what going through reads, whatever is packed.
TEST(RowSource, OfAMixARowDependsOnItsNumberOnly) {
  const DocumentStore documents = documents_for(kMix, 1, 5);
  for (const bool shuffle : {true, false}) {
    RowOptions chosen = mixed(kMix);
    chosen.shuffle = shuffle;
    const auto read = [&](RowSource& rows, int64_t row) {
      std::vector<int32_t> ids(60), targets(60), in_row(16);
      std::vector<Segment> segments(16);
      rows.fill(row, {StreamBuffers{ids, {}, segments}, targets, in_row});
      ids.insert(ids.end(), in_row.begin(), in_row.end());
      return ids;
    };
    RowSource forward(documents, chosen);
    const int64_t count = forward.rows_until(30);
    std::vector<std::vector<int32_t>> rows;
    for (int64_t row = 0; row < count; ++row) rows.push_back(read(forward, row));
    std::mt19937 random(6);
    for (int trial = 0; trial < 30; ++trial) {
      RowSource resumed(documents, chosen);
      for (int64_t row = random() % count, end = std::min(count, row + 9); row < end; ++row)
        ASSERT_EQ(read(resumed, row), rows[static_cast<size_t>(row)]) << row;
    }
    EXPECT_EQ(forward.epoch_of(forward.rows_until(29)), 29);
  }
}

TEST(RowSource, OfAMixCountsWhatAnEpochTakes) {
  const DocumentStore documents = documents_for({{10, 1}, {2, 6}}, 1, 7);
  RowOptions chosen = mixed({{10, 1}, {2, 6}});
  chosen.shuffle = false;
  RowSource packed(documents, chosen);
  int64_t tokens = documents.length(0);
  for (const int64_t document : {10, 11}) tokens += 3 * documents.length(document);
  EXPECT_EQ(packed.first_epoch_tokens(), tokens);
  int64_t in_rows = 0;
  for (int64_t row = 0; row < packed.rows_until(1); ++row)
    in_rows += packed.counts(row).tokens.sum();
  EXPECT_EQ(in_rows, tokens);
  EXPECT_EQ(packed.most_epochs(), RowSource::kMaxPacked / 7);
  chosen.packing = false;
  RowSource alone(documents, chosen);
  EXPECT_EQ(alone.rows_until(1'000'000), 7'000'000);
  EXPECT_EQ(alone.epoch_of(7'000'000), 1'000'000);
  // Seven of the longest are at most 140 tokens.
  chosen.packing = true;
  chosen.max_length = 140;
  RowSource one_row(documents, chosen);
  EXPECT_EQ(one_row.rows_until(1'000'000), 1'000'000);
}

TEST(DocumentCycle, IsAPermutationForEverySize) {
  for (int64_t size = 1; size <= 70; ++size) {
    const DocumentCycle cycle(size, 42, 1, 5);
    std::set<int64_t> seen;
    for (int64_t place = 0; place < size; ++place) {
      seen.insert(cycle.at(place));
      ASSERT_TRUE(cycle.at(place) >= 0 && cycle.at(place) < size);
    }
    ASSERT_EQ(static_cast<int64_t>(seen.size()), size);
  }
  const DocumentCycle largest(int64_t{1} << 31, 42, 0, 0);
  EXPECT_LT(largest.at((int64_t{1} << 31) - 1), int64_t{1} << 31);
}

// All orders of four come about equally often: 24 of them in 12'000 cycles, 500 each, with a
// standard deviation of 22.
TEST(DocumentCycle, EveryOrderIsAboutAsLikely) {
  std::map<std::vector<int64_t>, int> orders;
  for (uint64_t number = 0; number < 12'000; ++number) {
    const DocumentCycle cycle(4, 7, 0, number);
    ++orders[{cycle.at(0), cycle.at(1), cycle.at(2), cycle.at(3)}];
  }
  ASSERT_EQ(orders.size(), 24U);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 500, 110);
}

TEST(DocumentCycle, DiffersBySeedPartAndNumber) {
  std::set<std::vector<int64_t>> orders;
  const auto order_of = [&](const DocumentCycle& cycle) {
    std::vector<int64_t> order;
    for (int64_t place = 0; place < 50; ++place) order.push_back(cycle.at(place));
    return order;
  };
  for (const uint64_t seed : {0ULL, 1ULL, 1ULL << 32})
    for (const int64_t part : {0, 1, 2})
      for (const uint64_t number : {0ULL, 1ULL, 8ULL, 1ULL << 32})
        orders.insert(order_of({50, seed, part, number}));
  EXPECT_EQ(orders.size(), 36U);
}

}  // namespace
}  // namespace snug::text
