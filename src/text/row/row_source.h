// The rows that training reads: documents packed into rows of max_length tokens, epoch after
// epoch. Rows are numbered through the whole run, and row k depends on nothing but the documents,
// the options and k, so a run resumes anywhere and the micro-batch does not matter.
//
// The memory is taken when the object is made; fill and the counts allocate nothing more. Moving to
// another epoch shuffles and packs again, which takes time in proportion to the documents; a row
// far off takes as long for each epoch that lies between, unless all epochs have as many rows. One
// loader, one thread. The documents must outlive it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "text/row/document_store.h"

namespace snug::text {

struct RowOptions {
  PerStream<int32_t> max_length = 0;  // tokens per row; the streams are those of the documents
  int32_t max_segments = 0;           // documents a row may hold, at least 1
  bool packing = true;                // else one document a row
  bool shuffle = true;
  uint64_t seed = 0;
  int32_t padding_id = 0;  // fills the tail of a row
  // So many consecutive documents belong together: they share a row, side by side.
  int32_t group = 1;
  // What a decoder reads before the tokens that it is to predict, where an encoder is there.
  int32_t start_id = 0;
};

// In which order an epoch goes through the documents, in groups of those that belong together, and
// which of them share a row. A pure function of the documents' lengths, the seed and the epoch: not
// of batch size or ranks. The memory is taken once, when the object is made; make reuses it. One
// thread.
class EpochOrder {
 public:
  EpochOrder(const DocumentStore& documents, const RowOptions& options);

  // Rows of another size from here on; no epoch is made of them yet. Requires what the constructor
  // does; allocates nothing.
  void set_rows(const PerStream<int32_t>& max_length, int32_t max_segments);

  // Shuffles and packs. Packing is first fit over the shuffled order: a row takes the next
  // document that fits; one that does not waits, at most kWaiting of them, and goes first into the
  // next row. Nothing is left out and no document spans rows.
  void make(int64_t epoch);

  int64_t epoch() const { return epoch_; }  // the one made last, -1 before
  int64_t rows() const { return rows_; }
  // The documents of a row, as a range of places.
  int32_t first(int64_t row) const { return row_begin_[row] * options_.group; }
  int32_t end(int64_t row) const { return row_begin_[row + 1] * options_.group; }
  int32_t document(int32_t place) const {
    return order_[place / options_.group] * options_.group + place % options_.group;
  }

  int64_t host_bytes() const;

  static constexpr int32_t kWaiting = 64;

 private:
  void shuffle();
  void pack();
  // What a row holds so far.
  struct Filled {
    PerStream<int32_t> tokens;
    int32_t segments = 0;
  };
  // Adds a group of documents to a row, unless there is no room for it in some stream.
  bool takes(int32_t group, Filled& row) const;
  bool has_room(const Filled& row) const;

  const DocumentStore& documents_;
  RowOptions options_;
  int64_t epoch_ = -1;
  int64_t rows_ = 0;
  std::vector<int32_t> order_;      // (groups)
  std::vector<int32_t> row_begin_;  // (groups + 1), of which rows + 1 are used
  std::vector<int32_t> waiting_;    // (kWaiting)
};

// The tokens [begin, end) of a row that one document takes.
struct Segment {
  int32_t begin = 0;
  int32_t end = 0;
  bool operator==(const Segment&) const = default;
};

// Where a stream of a row is written; sizes are those of RowOptions.
struct StreamBuffers {
  std::span<int32_t> ids;        // (max_length), padding_id in the tail
  std::span<int32_t> positions;  // (max_length), from 0 in each document; 0 in the tail; or empty
  std::span<Segment> segments;   // (max_segments), unused ones are [max_length, max_length)
};

struct RowBuffers {
  PerStream<StreamBuffers> streams;
  // For each id of the decoder's stream (max_length), the next token of the same document, which
  // the model is to predict; -1: no loss.
  std::span<int32_t> targets;
  std::span<int32_t> documents{};  // (max_segments), of each segment, -1 of an unused one; or empty
};

struct RowCounts {
  int32_t segments = 0;
  PerStream<int32_t> tokens = 0;  // of documents; the tail is max_length - tokens
  int32_t targets = 0;            // tokens that carry loss
  int32_t leading = 0;            // of these, those of the first document of each group
  int32_t desirable = 0;          // groups whose first document has the label 1
};

class RowSource {
 public:
  // Requires at least one document, whole groups, and none longer than its share of max_length.
  RowSource(const DocumentStore& documents, const RowOptions& options);
  RowSource(DocumentStore&&, const RowOptions&) = delete;

  // The rows of another size, as if they had been made so. Requires what the constructor does;
  // allocates nothing.
  void set_rows(const PerStream<int32_t>& max_length, int32_t max_segments);

  // Writes row `row` of the run and says what it holds.
  RowCounts fill(int64_t row, const RowBuffers& buffers);

  // What rows [first, first + count) hold, without writing them.
  int64_t trained_tokens(int64_t first, int64_t count);
  RowCounts counts(int64_t row);

  // Rows of epochs [0, epochs): the number of the first row of epoch `epochs`. Packing makes
  // epochs differ by a few rows.
  int64_t rows_until(int64_t epochs);
  // The epoch of a row.
  int64_t epoch_of(int64_t row);

  // Documents that are packed to find a row or an epoch far off, at most: less than a minute. What
  // lies farther is refused with a UserError.
  static constexpr int64_t kMaxPacked = int64_t{1} << 30;
  // How many epochs can be counted.
  int64_t most_epochs();

  const RowOptions& options() const { return options_; }
  const DocumentStore& documents() const { return documents_; }
  int64_t host_bytes() const;

  static constexpr size_t kMarks = 4096;

 private:
  // An epoch and the number of its first row.
  struct Start {
    int64_t epoch = 0;
    int64_t row = 0;
  };
  // The place of a row in its epoch.
  struct Place {
    const EpochOrder* order;
    int64_t row;
  };

  // The order of an epoch, made when it is not there. Two are kept: the loader stands one step
  // ahead, so around an epoch's end both are asked for in turn.
  const EpochOrder& order_of(const Start& start);
  // The rows of every epoch where all have as many, else 0.
  int64_t rows_of_each();
  // The last known start for which `is_before` holds, and the one that follows it.
  template <typename IsBefore>
  Start known_start(const IsBefore& is_before) const;
  Start next(const Start& start);
  void remember(const Start& start);
  void check_distance(int64_t epochs) const;
  bool all_fit_one_row() const;
  void check_sizes(const RowBuffers& buffers) const;
  RowCounts no_counts() const;
  // What a document adds to a row: place `at` of an order.
  void count(int32_t document, int32_t at, RowCounts& counts) const;
  // The words of a document's part become the ids that are read and those that are predicted.
  void split_targets(std::span<int32_t> words, std::span<int32_t> targets) const;
  void fill_part(int32_t document, TokenStream stream, const RowBuffers& buffers,
                 RowCounts& counts) const;
  void fill_tails(const RowBuffers& buffers, const RowCounts& counts) const;
  Start start_of(int64_t row);
  Place place_of(int64_t row);

  const DocumentStore& documents_;
  RowOptions options_;
  std::array<EpochOrder, 2> orders_;  // by parity of the epoch
  std::array<int64_t, 2> begins_{};   // the first rows of their epochs
  int64_t first_rows_ = 0;            // of epoch 0, once known
  // The first rows of epochs 0, stride, 2 stride, ... as far as known: at most kMarks.
  std::vector<int64_t> marks_;
  int64_t stride_ = 1;
};

}  // namespace snug::text
