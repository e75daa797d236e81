// The rows that training reads: documents packed into rows of max_length tokens, epoch after epoch.
// Rows are numbered through the whole run. Row k depends only on the documents, the options and k,
// so a run can resume at any row, and the size of micro-batches does not matter.
//
// Memory is allocated when the object is made; fill and the counts allocate nothing. Moving to
// another epoch shuffles and packs again, in time proportional to the number of its documents.
// Finding a distant row takes that time for each epoch in between, unless all epochs have the same
// number of rows. Not thread-safe. The documents must outlive the object.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "text/row/document_store.h"
#include "text/row/epoch_order.h"

namespace snug::text {

// The tokens [begin, end) of a row that one document takes.
struct Segment {
  int32_t begin = 0;
  int32_t end = 0;
  bool operator==(const Segment&) const = default;
};

// Buffers for one stream of a row; their sizes follow from RowOptions.
struct StreamBuffers {
  std::span<int32_t> ids;  // (max_length), ending in padding_id
  // (max_length), counted from 0 in each document, 0 in the padding; may be empty.
  std::span<int32_t> positions;
  std::span<Segment> segments;  // (max_segments), unused ones are [max_length, max_length)
};

struct RowBuffers {
  PerStream<StreamBuffers> streams;
  // For each id of the decoder's stream (max_length), the next token of the same document, which is
  // to be predicted; -1: no loss.
  std::span<int32_t> targets;
  // (max_segments), the document of each segment, -1 for an unused one; may be empty.
  std::span<int32_t> documents{};
};

struct RowCounts {
  int32_t segments = 0;
  PerStream<int32_t> tokens = 0;  // of documents; the rest of max_length is padding
  int32_t targets = 0;            // tokens with loss
  int32_t leading = 0;            // of these, those of each group's first document
  int32_t desirable = 0;          // groups whose first document has the label 1
};

class RowSource {
 public:
  // Requires at least one document in an epoch, complete groups, and no document longer than its
  // share of max_length.
  RowSource(const DocumentStore& documents, const RowOptions& options);
  RowSource(DocumentStore&&, const RowOptions&) = delete;

  // Changes the size of rows, as if the object had been made with it. Requirements as for the
  // constructor; allocates nothing.
  void set_rows(const PerStream<int32_t>& max_length, int32_t max_segments);

  // Writes row `row` of the run, and returns its counts.
  RowCounts fill(int64_t row, const RowBuffers& buffers);

  // Counts for rows [first, first + count) or a row, without writing them.
  int64_t trained_tokens(int64_t first, int64_t count);
  RowCounts counts(int64_t row);

  // The number of rows in epochs [0, epochs), which is the number of the first row of epoch
  // `epochs`. With packing, epochs may differ by a few rows.
  int64_t rows_until(int64_t epochs);
  // The epoch to which a row belongs.
  int64_t epoch_of(int64_t row);

  // The most documents that are packed to find a distant row or epoch, which takes less than a
  // minute. A search that needs more is refused with a UserError.
  static constexpr int64_t kMaxPacked = int64_t{1} << 30;
  // The number of epochs whose rows can be counted.
  int64_t most_epochs();
  // The tokens of the first epoch's documents, in all streams.
  int64_t first_epoch_tokens();

  // Without parts, where an epoch takes all documents once.
  const RowOptions& options() const { return options_; }
  const DocumentStore& documents() const { return documents_; }
  int64_t host_bytes() const;

  static constexpr size_t kMarks = 4096;

 private:
  // An epoch, and the number of its first row.
  struct Start {
    int64_t epoch = 0;
    int64_t row = 0;
  };
  // The place of a row within its epoch.
  struct Place {
    const EpochOrder* order;
    int64_t row;
  };

  // The order of an epoch, which is made if needed. Two orders are kept: the loader is one step
  // ahead, so that around the end of an epoch both are needed alternately.
  const EpochOrder& order_of(const Start& start);
  // The number of rows per epoch if it is the same for all epochs, else 0.
  int64_t rows_of_each();
  // The last known start for which `is_before` holds, and the one after it.
  template <typename IsBefore>
  Start known_start(const IsBefore& is_before) const;
  Start next(const Start& start);
  void remember(const Start& start);
  void check_distance(int64_t epochs) const;
  int64_t epoch_documents() const { return orders_[0].groups() * options_.group; }
  // No epoch has more.
  int64_t most_epoch_tokens(TokenStream stream) const;
  bool all_fit_one_row() const;
  void check_sizes(const RowBuffers& buffers) const;
  RowCounts no_counts() const;
  // Adds a document at place `at` of an order to the counts of its row.
  void count(int32_t document, int32_t at, RowCounts& counts) const;
  // Splits the words of a document's part into the ids to read and the ids to predict.
  void split_targets(std::span<int32_t> words, std::span<int32_t> targets) const;
  void fill_part(int32_t document, TokenStream stream, const RowBuffers& buffers,
                 RowCounts& counts) const;
  void fill_tails(const RowBuffers& buffers, const RowCounts& counts) const;
  Start start_of(int64_t row);
  Place place_of(int64_t row);

  const DocumentStore& documents_;
  RowOptions options_;
  std::array<EpochOrder, 2> orders_;  // by parity of the epoch
  std::array<int64_t, 2> begins_{};   // number of the first row of each one's epoch
  int64_t first_rows_ = 0;            // the rows of epoch 0, once known
  // The first rows of epochs 0, stride, 2 stride, ... as far as they are known: at most kMarks.
  std::vector<int64_t> marks_;
  int64_t stride_ = 1;
};

}  // namespace snug::text
