// Rows of documents with two parts: what an encoder reads, and what a decoder predicts.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "text/row/row_source.h"

namespace snug::text {
namespace {

using Ids = std::vector<int32_t>;

// Tokens of the encoder's and of the decoder's part.
using Lengths = std::vector<std::pair<int, int>>;

constexpr int32_t kStart = 3;
constexpr int32_t kPadding = 7;

// Token i of document d is 1000 d + i in both parts; the encoder's have 500 more. In every third
// document the first two tokens of the decoder's part are no targets.
DocumentStore pairs_of(const Lengths& lengths) {
  DocumentStore store;
  for (size_t d = 0; d < lengths.size(); ++d) {
    Ids encoder;
    Ids ids;
    for (int i = 0; i < lengths[d].first; ++i)
      encoder.push_back(static_cast<int32_t>(1000 * d) + 500 + i);
    for (int i = 0; i < lengths[d].second; ++i) ids.push_back(static_cast<int32_t>(1000 * d) + i);
    std::vector<uint8_t> trained(ids.size(), 1);
    if (d % 3 == 2)
      for (size_t i = 0; i < std::min<size_t>(2, trained.size()); ++i) trained[i] = 0;
    store.add_pair(encoder, ids, trained);
  }
  store.finish();
  return store;
}

DocumentStore random_pairs(int count, int longest_encoder, int longest_decoder, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int most) {
    return 1 + static_cast<int>(random() % static_cast<unsigned>(most));
  };
  Lengths lengths;
  for (int i = 0; i < count; ++i) {
    const int encoder = below(longest_encoder);
    lengths.emplace_back(encoder, below(longest_decoder));
  }
  return pairs_of(lengths);
}

RowOptions options(int32_t decoder, int32_t encoder, int32_t max_segments) {
  return {.max_length = {decoder, encoder},
          .max_segments = max_segments,
          .seed = 42,
          .padding_id = kPadding,
          .start_id = kStart};
}

struct Stream {
  Ids ids, positions;
  std::vector<Segment> segments;
  StreamBuffers buffers() { return {ids, positions, segments}; }
};

struct Row {
  Stream decoder, encoder;
  Ids targets, documents;
  RowCounts counts;
};

Row read(RowSource& source, int64_t row) {
  const RowOptions& chosen = source.options();
  Row result;
  const auto make = [&](Stream& stream, int32_t length) {
    stream.ids.assign(static_cast<size_t>(length), -99);
    stream.positions.assign(static_cast<size_t>(length), -99);
    stream.segments.assign(static_cast<size_t>(chosen.max_segments), {-99, -99});
  };
  make(result.decoder, chosen.max_length[TokenStream::decoder]);
  make(result.encoder, chosen.max_length[TokenStream::encoder]);
  result.targets.assign(result.decoder.ids.size(), -99);
  result.documents.assign(static_cast<size_t>(chosen.max_segments), -99);
  result.counts = source.fill(
      row,
      {{result.decoder.buffers(), result.encoder.buffers()}, result.targets, result.documents});
  return result;
}

// The tokens of a part, as the test made them.
void expect_part(const Stream& stream, const Segment& segment, int32_t first) {
  for (int32_t i = segment.begin; i < segment.end; ++i) {
    ASSERT_EQ(stream.ids[static_cast<size_t>(i)], first + i - segment.begin);
    ASSERT_EQ(stream.positions[static_cast<size_t>(i)], i - segment.begin);
  }
}

void expect_tail(const Stream& stream, int32_t tokens, int32_t segments) {
  const auto length = static_cast<int32_t>(stream.ids.size());
  for (auto i = static_cast<size_t>(tokens); i < stream.ids.size(); ++i) {
    ASSERT_EQ(stream.ids[i], kPadding);
    ASSERT_EQ(stream.positions[i], 0);
  }
  for (auto i = static_cast<size_t>(segments); i < stream.segments.size(); ++i)
    ASSERT_EQ(stream.segments[i], (Segment{length, length}));
}

// What the decoder reads at each token is what it was to predict at the token before, and the
// start at the first.
void expect_decoder(const Row& row, const Segment& segment, int32_t document) {
  const Stream& stream = row.decoder;
  const auto at = [](int32_t index) { return static_cast<size_t>(index); };
  ASSERT_EQ(stream.ids[at(segment.begin)], kStart);
  for (int32_t i = segment.begin; i < segment.end; ++i) {
    const int32_t label = 1000 * document + i - segment.begin;
    const bool is_trained = document % 3 != 2 || i - segment.begin >= 2;
    ASSERT_EQ(row.targets[at(i)], is_trained ? label : -1);
    ASSERT_EQ(stream.positions[at(i)], i - segment.begin);
    if (i + 1 < segment.end) {
      ASSERT_EQ(stream.ids[at(i + 1)], label);
    }
  }
}

void expect_row(const DocumentStore& documents, const Row& row, std::multiset<int32_t>& seen) {
  int32_t decoder_end = 0;
  int32_t encoder_end = 0;
  for (int32_t s = 0; s < row.counts.segments; ++s) {
    const Segment decoder = row.decoder.segments[static_cast<size_t>(s)];
    const Segment encoder = row.encoder.segments[static_cast<size_t>(s)];
    const int32_t document = row.documents[static_cast<size_t>(s)];
    ASSERT_EQ(decoder, (Segment{decoder_end, decoder_end + documents.length(document)}));
    ASSERT_EQ(encoder, (Segment{encoder_end,
                                encoder_end + documents.length(document, TokenStream::encoder)}));
    expect_decoder(row, decoder, document);
    expect_part(row.encoder, encoder, 1000 * document + 500);
    decoder_end = decoder.end;
    encoder_end = encoder.end;
    seen.insert(document);
  }
  ASSERT_EQ(row.counts.tokens, (PerStream<int32_t>(decoder_end, encoder_end)));
  ASSERT_EQ(row.counts.targets,
            std::ranges::count_if(row.targets, [](int32_t target) { return target >= 0; }));
  expect_tail(row.decoder, decoder_end, row.counts.segments);
  expect_tail(row.encoder, encoder_end, row.counts.segments);
}

void expect_epochs(const DocumentStore& documents, const RowOptions& chosen) {
  RowSource source(documents, chosen);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::multiset<int32_t> seen;
    for (int64_t row = source.rows_until(epoch); row < source.rows_until(epoch + 1); ++row) {
      const Row filled = read(source, row);
      ASSERT_EQ(filled.counts.tokens, source.counts(row).tokens);
      ASSERT_EQ(filled.counts.targets, source.counts(row).targets);
      expect_row(documents, filled, seen);
    }
    // Every document exactly once.
    ASSERT_EQ(static_cast<int64_t>(seen.size()), documents.size());
    ASSERT_EQ(std::set<int32_t>(seen.begin(), seen.end()).size(), seen.size());
  }
}

TEST(RowStreams, EveryEpochHoldsEveryDocumentOnceWithBothParts) {
  for (const int32_t max_segments : {1, 3, 64})
    for (const bool packing : {true, false}) {
      RowOptions chosen = options(20, 60, max_segments);
      chosen.packing = packing;
      expect_epochs(random_pairs(300, 60, 20, 1), chosen);
      expect_epochs(random_pairs(300, 9, 20, 2), chosen);
      expect_epochs(random_pairs(300, 60, 3, 3), chosen);
      expect_epochs(random_pairs(1, 60, 20, 4), chosen);
    }
}

// A row is full when either stream is.
TEST(RowStreams, ADocumentMustFitIntoBothStreams) {
  RowOptions by_encoder = options(100, 10, 8);
  by_encoder.shuffle = false;
  const DocumentStore long_inputs = pairs_of({{6, 1}, {5, 1}, {4, 1}, {5, 1}});
  RowSource inputs(long_inputs, by_encoder);
  EXPECT_EQ(inputs.rows_until(1), 2);
  EXPECT_EQ(read(inputs, 0).documents, (Ids{0, 2, -1, -1, -1, -1, -1, -1}));
  RowOptions by_decoder = options(10, 100, 8);
  by_decoder.shuffle = false;
  const DocumentStore long_answers = pairs_of({{1, 6}, {1, 5}, {1, 4}, {1, 5}});
  RowSource answers(long_answers, by_decoder);
  EXPECT_EQ(answers.rows_until(1), 2);
  EXPECT_EQ(read(answers, 0).documents, (Ids{0, 2, -1, -1, -1, -1, -1, -1}));
}

TEST(RowStreams, AllDocumentsInOneRowFitBothStreams) {
  const DocumentStore documents = pairs_of({{6, 1}, {5, 2}});
  EXPECT_EQ(RowSource(documents, options(3, 11, 4)).rows_until(1), 1);
  EXPECT_EQ(RowSource(documents, options(3, 10, 4)).rows_until(1), 2);
  EXPECT_EQ(RowSource(documents, options(2, 11, 4)).rows_until(1), 2);
}

TEST(RowStreams, TheShorterStreamSaysHowManyDocumentsARowHolds) {
  const DocumentStore documents = pairs_of({{4, 1}, {4, 1}, {4, 1}, {4, 9}});
  EXPECT_EQ(documents.lengths().most_in({100, 9}), 2);
  EXPECT_EQ(documents.lengths().most_in({2, 100}), 2);
  EXPECT_EQ(documents.lengths().most_in({12, 16}), 4);
  // By the stream in which a document has most tokens.
  EXPECT_EQ(documents.lengths().longer_than(3), 4);
  EXPECT_EQ(documents.lengths().longer_than(4), 1);
}

TEST(RowStreams, TheIndexCountsEachStream) {
  const DocumentStore documents = pairs_of({{4, 1}, {2, 3}, {7, 9}});
  EXPECT_EQ(documents.tokens(), 26);
  EXPECT_EQ(documents.tokens(TokenStream::encoder), 13);
  EXPECT_EQ(documents.longest(), (PerStream<int32_t>(9, 7)));
  EXPECT_EQ(documents.targets(1), 3);
  EXPECT_EQ(documents.targets(2), 7);
  Ids words(7);
  documents.read(2, words, TokenStream::encoder);
  EXPECT_EQ(words, (Ids{2500, 2501, 2502, 2503, 2504, 2505, 2506}));
}

// The same tokens, divided otherwise, are other data.
TEST(RowStreams, TheFingerprintTellsThePartsApart) {
  DocumentStore first;
  first.add_pair(Ids{1, 2}, Ids{3}, std::vector<uint8_t>{0});
  DocumentStore second;
  second.add_pair(Ids{1}, Ids{2, 3}, std::vector<uint8_t>{0, 0});
  EXPECT_NE(first.fingerprint(), second.fingerprint());
}

}  // namespace
}  // namespace snug::text
