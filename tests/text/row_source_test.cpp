#include "text/row/row_source.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "base/error.h"

namespace snug::text {
namespace {

// Documents that can be told apart: token i of document d is 1000 d + i. The first third of each
// is prompt.
DocumentStore documents_of(const std::vector<int>& lengths) {
  DocumentStore store;
  for (size_t d = 0; d < lengths.size(); ++d) {
    std::vector<int32_t> ids;
    std::vector<uint8_t> trained;
    for (int i = 0; i < lengths[d]; ++i) {
      ids.push_back(static_cast<int32_t>(1000 * d) + i);
      trained.push_back(i >= lengths[d] / 3 ? 1 : 0);
    }
    store.add(ids, trained);
  }
  store.finish();
  return store;
}

DocumentStore random_documents(int count, int longest, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> lengths;
  for (int i = 0; i < count; ++i)
    lengths.push_back(2 + static_cast<int>(random() % static_cast<unsigned>(longest - 1)));
  return documents_of(lengths);
}

RowOptions options(int32_t max_length, int32_t max_segments = 8) {
  RowOptions result;
  result.max_length = max_length;
  result.max_segments = max_segments;
  result.seed = 42;
  result.padding_id = 7;
  return result;
}

struct Row {
  std::vector<int32_t> ids, targets, positions;
  std::vector<Segment> segments;
  RowCounts counts;
  bool operator==(const Row& other) const {
    return ids == other.ids && targets == other.targets && positions == other.positions &&
           segments == other.segments;
  }
};

Row read(RowSource& source, int64_t row) {
  const RowOptions& chosen = source.options();
  Row result;
  for (auto* values : {&result.ids, &result.targets, &result.positions})
    values->assign(static_cast<size_t>(chosen.max_length.decoder()), -99);
  result.segments.assign(static_cast<size_t>(chosen.max_segments), {-99, -99});
  result.counts = source.fill(
      row, {StreamBuffers{result.ids, result.positions, result.segments}, result.targets});
  return result;
}

void expect_tail(const Row& row, const RowOptions& chosen) {
  const int32_t length = chosen.max_length.decoder();
  for (int32_t i = row.counts.tokens.decoder(); i < length; ++i) {
    ASSERT_EQ(row.ids[i], chosen.padding_id);
    ASSERT_EQ(row.targets[i], -1);
    ASSERT_EQ(row.positions[i], 0);
  }
  for (int32_t i = row.counts.segments; i < chosen.max_segments; ++i)
    ASSERT_EQ(row.segments[i], (Segment{length, length}));
}

// Checks one row and notes which documents it holds.
void expect_row(const DocumentStore& documents, const RowOptions& chosen, const Row& row,
                std::multiset<int32_t>& seen) {
  int32_t end = 0;
  int32_t targets = 0;
  for (int32_t s = 0; s < row.counts.segments; ++s) {
    const Segment segment = row.segments[s];
    ASSERT_EQ(segment.begin, end);
    const int32_t document = row.ids[segment.begin] / 1000;
    ASSERT_EQ(segment.end - segment.begin, documents.length(document));
    std::vector<int32_t> words(static_cast<size_t>(documents.length(document)));
    documents.read(document, words);
    for (int32_t i = 0; i < documents.length(document); ++i) {
      const int32_t at = segment.begin + i;
      const bool predicts =
          at + 1 < segment.end && DocumentStore::is_target(words[static_cast<size_t>(i) + 1]);
      ASSERT_EQ(row.ids[at], 1000 * document + i);
      ASSERT_EQ(row.positions[at], i);
      ASSERT_EQ(row.targets[at], predicts ? row.ids[at + 1] : -1);
      targets += row.targets[at] >= 0 ? 1 : 0;
    }
    seen.insert(document);
    end = segment.end;
  }
  ASSERT_EQ(row.counts.tokens, end);
  ASSERT_EQ(row.counts.targets, targets);
  expect_tail(row, chosen);
}

void expect_epochs(const DocumentStore& documents, const RowOptions& chosen) {
  RowSource source(documents, chosen);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::multiset<int32_t> seen;
    for (int64_t row = source.rows_until(epoch); row < source.rows_until(epoch + 1); ++row) {
      ASSERT_EQ(source.epoch_of(row), epoch);
      expect_row(documents, chosen, read(source, row), seen);
    }
    // Every document exactly once.
    ASSERT_EQ(static_cast<int64_t>(seen.size()), documents.size());
    ASSERT_EQ(std::set<int32_t>(seen.begin(), seen.end()).size(), seen.size());
  }
}

TEST(DocumentStore, says_how_many_documents_a_row_may_ever_hold) {
  EXPECT_EQ(documents_of({4, 4, 4, 4, 4, 4}).lengths().most_in(17), 4);
  EXPECT_EQ(documents_of({9, 2, 17, 3}).lengths().most_in(17), 3);
  EXPECT_EQ(documents_of({9}).lengths().most_in(8), 0);
  // Of those that come twice in an epoch: 2, 2, 3, 3 and the first 9.
  EXPECT_EQ(documents_of({9, 2, 17, 3}).lengths().most_in(19, 2), 5);
  const DocumentStore documents = random_documents(500, 60, 5);
  const int32_t most = documents.lengths().most_in(64);
  RowSource unlimited(documents, options(64, 512));
  RowSource limited(documents, options(64, most));
  const int64_t rows = unlimited.rows_until(3);
  ASSERT_EQ(limited.rows_until(3), rows);
  for (int64_t row = 0; row < rows; ++row) {
    ASSERT_LE(unlimited.counts(row).segments, most) << row;
    ASSERT_EQ(limited.counts(row).tokens, unlimited.counts(row).tokens) << row;
  }
}

// The first target stands at a third of each document, and never at its first token.
TEST(DocumentStore, SaysTheFewestTokensThatLeaveSomethingOfEach) {
  EXPECT_EQ(documents_of({9}).least(), 4);
  EXPECT_EQ(documents_of({9, 30, 4}).least(), 11);
  EXPECT_EQ(documents_of({2}).least(), 2);
  DocumentStore prompts;
  prompts.add(std::vector<int32_t>{1, 2, 3}, std::vector<uint8_t>{0, 0, 0});
  EXPECT_EQ(prompts.least(), 0);
}

TEST(DocumentLengths, AreAValueThatOutlivesTheDocuments) {
  const DocumentLengths lengths = documents_of({9, 2, 17, 3, 9}).lengths();
  EXPECT_EQ(lengths.size(), 5);
  EXPECT_EQ(lengths.longest(), PerStream<int32_t>(17));
  EXPECT_EQ(lengths.longer_than(0), 5);
  EXPECT_EQ(lengths.longer_than(8), 3);
  EXPECT_EQ(lengths.longer_than(9), 1);
  EXPECT_EQ(lengths.longer_than(17), 0);
}

TEST(RowSource, EveryEpochHoldsEveryDocumentOnceAndWhole) {
  for (const int32_t max_segments : {1, 2, 5, 64})
    for (const bool packing : {true, false})
      for (const bool shuffle : {true, false}) {
        RowOptions chosen = options(50, max_segments);
        chosen.packing = packing;
        chosen.shuffle = shuffle;
        expect_epochs(random_documents(300, 50, 1), chosen);
        expect_epochs(random_documents(300, 7, 2), chosen);
        expect_epochs(random_documents(1, 50, 3), chosen);
      }
}

TEST(RowSource, PacksTightly) {
  const DocumentStore documents = random_documents(2000, 40, 5);
  RowSource source(documents, options(128, 128));
  const int64_t least = (documents.tokens() + 127) / 128;
  EXPECT_LE(source.rows_until(1), least + least / 50 + 1);
}

TEST(RowSource, WithoutPackingEachRowIsADocument) {
  const DocumentStore documents = random_documents(20, 10, 4);
  RowOptions chosen = options(16);
  chosen.packing = false;
  chosen.shuffle = false;
  RowSource source(documents, chosen);
  EXPECT_EQ(source.rows_until(2), 40);
  for (int32_t row = 0; row < 40; ++row) EXPECT_EQ(read(source, row).ids[0], 1000 * (row % 20));
}

TEST(RowSource, KeepsTheOrderOfTheFileWithoutShuffling) {
  const DocumentStore documents = documents_of({3, 3, 3, 3, 3});
  RowOptions chosen = options(6);
  chosen.shuffle = false;
  RowSource source(documents, chosen);
  EXPECT_EQ(source.rows_until(1), 3);
  EXPECT_EQ(read(source, 1).ids, (std::vector<int32_t>{2000, 2001, 2002, 3000, 3001, 3002}));
}

TEST(RowSource, AFullRowOfSegmentsCloses) {
  const DocumentStore documents = documents_of({2, 2, 2, 2, 2});
  RowSource source(documents, options(50, 2));
  EXPECT_EQ(source.rows_until(1), 3);
}

TEST(RowSource, ARowDependsOnItsNumberOnly) {
  const DocumentStore documents = random_documents(120, 30, 6);
  RowSource forward(documents, options(64));
  std::vector<Row> rows;
  const int64_t count = forward.rows_until(4);
  for (int64_t row = 0; row < count; ++row) rows.push_back(read(forward, row));
  RowSource backward(documents, options(64));
  for (int64_t row = count - 1; row >= 0; --row) ASSERT_EQ(read(backward, row), rows[row]);
  RowSource resumed(documents, options(64));
  ASSERT_EQ(read(resumed, count - 1), rows[count - 1]);
}

TEST(RowSource, EpochsAndSeedsShuffleDifferently) {
  const DocumentStore documents = random_documents(200, 30, 7);
  RowSource source(documents, options(64));
  EXPECT_FALSE(read(source, 0) == read(source, source.rows_until(1)));
  RowOptions other = options(64);
  other.seed = 43;
  RowSource reseeded(documents, other);
  EXPECT_FALSE(read(source, 0) == read(reseeded, 0));
}

// Each document comes first about equally often.
TEST(RowSource, ShufflesEvenly) {
  RowOptions chosen = options(4);
  chosen.packing = false;
  const DocumentStore documents = documents_of({2, 2, 2, 2, 2});
  RowSource source(documents, chosen);
  std::map<int32_t, int> first;
  constexpr int kEpochs = 4000;
  for (int epoch = 0; epoch < kEpochs; ++epoch) ++first[read(source, 5 * epoch).ids[0]];
  ASSERT_EQ(first.size(), 5U);
  // 800 expected, standard deviation 25.
  for (const auto& [document, count] : first) EXPECT_NEAR(count, 800, 125) << document;
}

TEST(RowSource, CountsTrainedTokensBeforehand) {
  const DocumentStore documents = random_documents(100, 30, 8);
  RowSource source(documents, options(64));
  const int64_t count = source.rows_until(2);
  int64_t total = 0;
  for (int64_t row = 0; row < count; ++row)
    for (const int32_t target : read(source, row).targets) total += target >= 0 ? 1 : 0;
  EXPECT_EQ(source.trained_tokens(0, count), total);
  EXPECT_EQ(source.trained_tokens(0, 5) + source.trained_tokens(5, count - 5), total);
}

// Some thousand times as many epochs as marks are kept.
TEST(RowSource, EpochsFarOffAreFoundAgain) {
  const DocumentStore documents = documents_of({5, 6, 7, 4});
  RowSource forward(documents, options(12));
  std::vector<int64_t> begins;
  for (int64_t epoch = 0; epoch < 20'000; ++epoch) begins.push_back(forward.rows_until(epoch));
  const int64_t bytes = forward.host_bytes();
  for (const int64_t epoch : {19'999, 3, 12'345, 4'096, 8'193, 0}) {
    ASSERT_EQ(forward.rows_until(epoch), begins[static_cast<size_t>(epoch)]) << epoch;
    ASSERT_EQ(forward.epoch_of(begins[static_cast<size_t>(epoch)]), epoch);
    ASSERT_EQ(forward.epoch_of(begins[static_cast<size_t>(epoch)] + 1), epoch);
  }
  RowSource resumed(documents, options(12));
  EXPECT_EQ(read(resumed, begins[15'000] + 1), read(forward, begins[15'000] + 1));
  EXPECT_EQ(forward.host_bytes(), bytes);
}

TEST(RowSource, WhatIsTooFarOffIsRefusedAtOnce) {
  const DocumentStore documents = random_documents(100, 30, 9);
  RowSource source(documents, options(64));
  EXPECT_THROW(source.rows_until(int64_t{1} << 60), base::UserError);
  EXPECT_THROW(source.epoch_of(int64_t{1} << 60), base::UserError);
  EXPECT_THROW(read(source, int64_t{1} << 60), base::UserError);
  EXPECT_GT(source.most_epochs(), 1'000'000);
  // Where all epochs have as many rows, no distance is too far.
  RowOptions alone = options(64);
  alone.packing = false;
  RowSource even(documents, alone);
  EXPECT_EQ(even.rows_until(1'000'000'000), 100'000'000'000);
  EXPECT_EQ(even.epoch_of(100'000'000'000 + 99), 1'000'000'000);
  const DocumentStore few = documents_of({5, 6});
  RowSource one_row(few, options(64));
  EXPECT_EQ(one_row.rows_until(1'000'000'000), 1'000'000'000);
  EXPECT_THROW(one_row.rows_until(int64_t{1} << 54), base::UserError);
}

TEST(DocumentStore, TheFingerprintTellsBoundariesAndIds) {
  const auto of = [](const std::vector<std::vector<int32_t>>& documents) {
    DocumentStore store;
    for (const auto& ids : documents) store.add(ids, std::vector<uint8_t>(ids.size(), 0));
    return store.fingerprint();
  };
  const std::set<std::string> all = {of({{1, 2, 3, 4}}), of({{1, 2}, {3, 4}}),
                                     of({{0, 1, 2, 3, 4}}), of({{0, 0, 1, 2, 3, 4}}),
                                     of({{1, 2, 4, 3}})};
  EXPECT_EQ(all.size(), 5U);
  EXPECT_EQ(of({{1, 2}, {3, 4}}), of({{1, 2}, {3, 4}}));
  DocumentStore learned;
  learned.add(std::vector<int32_t>{1, 2, 3, 4}, std::vector<uint8_t>{0, 0, 0, 1});
  EXPECT_NE(learned.fingerprint(), of({{1, 2, 3, 4}}));
}

// More tokens than the buffer of their file holds.
TEST(DocumentStore, ReadsWhatLiesInTheFile) {
  const DocumentStore documents = random_documents(9000, 40, 11);
  EXPECT_GT(documents.tokens() * 4, 2 * base::SpillFile::kBufferBytes);
  EXPECT_LT(documents.host_bytes(),
            documents.size() * 12 + 4096 * 12 + base::SpillFile::kBufferBytes);
  for (int64_t d = 0; d < documents.size(); ++d) {
    std::vector<int32_t> words(static_cast<size_t>(documents.length(d)));
    documents.read(d, words);
    for (int32_t i = 0; i < documents.length(d); ++i)
      ASSERT_EQ(DocumentStore::id_of(words[static_cast<size_t>(i)]), 1000 * d + i);
  }
}

// Whatever was read before, and without more memory.
TEST(RowSource, MakesRowsOfAnotherSize) {
  const DocumentStore documents = random_documents(200, 30, 5);
  RowSource changed(documents, options(64));
  const int64_t bytes = changed.host_bytes();
  for (const auto& [length, segments] : {std::pair{31, 8}, {300, 3}, {64, 8}}) {
    SCOPED_TRACE(length);
    changed.rows_until(5);
    changed.set_rows(length, segments);
    RowSource fresh(documents, options(length, segments));
    EXPECT_EQ(changed.rows_until(1), fresh.rows_until(1));
    const int64_t rows = fresh.rows_until(3);
    EXPECT_EQ(changed.rows_until(3), rows);
    for (int64_t row = rows - 1; row >= 0; --row)
      ASSERT_EQ(read(changed, row), read(fresh, row)) << row;
  }
  EXPECT_EQ(changed.host_bytes(), bytes);
}

TEST(RowSource, KnowsItsBytes) {
  const DocumentStore documents = random_documents(100, 30, 9);
  RowSource source(documents, options(64));
  const int64_t before = source.host_bytes();
  EXPECT_EQ(before, 2 * (100 + 101 + 64) * 4 + 4096 * 8);
  for (int64_t row = 0; row < source.rows_until(5); ++row) read(source, row);
  EXPECT_EQ(source.host_bytes(), before);
}

}  // namespace
}  // namespace snug::text
