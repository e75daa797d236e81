// The rows that training reads: documents packed into rows of max_length tokens, epoch after
// epoch. Rows are numbered through the whole run, and row k depends on nothing but the documents,
// the options and k, so a run resumes anywhere and the micro-batch does not matter.
//
// The memory is taken when the object is made; fill and the counts allocate nothing more, up to
// kEpochs epochs. Moving to another epoch shuffles and packs anew, which takes time in proportion
// to the documents. One loader, one thread. The documents must outlive it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "text/document_store.h"
#include "text/row_order.h"

namespace snug::text {

// The tokens [begin, end) of a row that one document takes.
struct Segment {
  int32_t begin = 0;
  int32_t end = 0;
  bool operator==(const Segment&) const = default;
};

// Where a row is written; sizes are those of RowOptions.
struct RowBuffers {
  std::span<int32_t> ids;        // (max_length), padding_id in the tail
  std::span<int32_t> targets;    // (max_length), the next token of the same document; -1: no loss
  std::span<int32_t> positions;  // (max_length), from 0 in each document; 0 in the tail
  std::span<Segment> segments;   // (max_segments), unused ones are [max_length, max_length)
};

struct RowCounts {
  int32_t segments = 0;
  int32_t tokens = 0;   // of documents; the tail is max_length - tokens
  int32_t targets = 0;  // tokens that carry loss
};

class RowSource {
 public:
  // Requires at least one document, none longer than max_length.
  RowSource(const DocumentStore& documents, const RowOptions& options);
  RowSource(DocumentStore&&, const RowOptions&) = delete;

  // Writes row `row` of the run and says what it holds.
  RowCounts fill(int64_t row, const RowBuffers& buffers);

  // What rows [first, first + count) hold, without writing them.
  int64_t trained_tokens(int64_t first, int64_t count);
  RowCounts counts(int64_t row);

  // Rows of epochs [0, epochs): the number of the first row of epoch `epochs`. Packing makes
  // epochs differ by a few rows.
  int64_t rows_until(int64_t epochs);
  // Of which epoch a row is.
  int64_t epoch_of(int64_t row);

  const RowOptions& options() const { return options_; }
  int64_t host_bytes() const;

  static constexpr int64_t kEpochs = 4096;

 private:
  // The order of an epoch, made when it is not at hand. Two are kept: the loader stands one step
  // ahead, so around an epoch's end both are asked for in turn.
  const RowOrder& order_of(int64_t epoch);
  // The place of a row in its epoch.
  struct Place {
    const RowOrder* order;
    int64_t row;
  };
  Place place_of(int64_t row);

  const DocumentStore& documents_;
  RowOptions options_;
  std::array<RowOrder, 2> orders_;    // by parity of the epoch
  std::vector<int64_t> epoch_begin_;  // first row of epochs 0, 1, ... as far as known
};

}  // namespace snug::text
