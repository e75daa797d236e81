// Determines the order in which an epoch goes through the documents, in groups of those that belong
// together, and which of them share a row. A pure function of the documents' lengths, the seed and
// the epoch, independent of batch size and ranks. Memory is allocated once, when the object is
// made; make reuses it. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "text/row/document_store.h"

namespace snug::text {

struct RowOptions {
  // Tokens per row, for the same streams as the documents.
  PerStream<int32_t> max_length = 0;
  int32_t max_segments = 0;  // the most documents per row, at least 1
  bool packing = true;       // otherwise one document per row
  bool shuffle = true;
  uint64_t seed = 0;
  int32_t padding_id = 0;  // fills the end of a row
  // The number of consecutive documents that form a group, which shares a row.
  int32_t group = 1;
  // The token that a decoder reads before the tokens that it predicts, if there is an encoder.
  int32_t start_id = 0;
};

class EpochOrder {
 public:
  EpochOrder(const DocumentStore& documents, const RowOptions& options);

  // Changes the size of rows for the next epochs; no epoch of that size exists until make is
  // called. Requirements as for the constructor; allocates nothing.
  void set_rows(const PerStream<int32_t>& max_length, int32_t max_segments);

  // Shuffles and packs. Packing is first fit over the shuffled order: a row takes the next document
  // that fits. A document that does not fit waits and goes first into the next row; at most
  // kWaiting of them wait. Nothing is left out, and no document spans two rows.
  void make(int64_t epoch);

  int64_t epoch() const { return epoch_; }  // the one made last; -1 before the first
  int64_t rows() const { return rows_; }
  // The documents of a row: a range of places in the order.
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
  // The content of a row so far.
  struct Filled {
    PerStream<int32_t> tokens;
    int32_t segments = 0;
  };
  // Adds a group of documents to a row, unless some stream has no room for it.
  bool takes(int32_t group, Filled& row) const;
  bool has_room(const Filled& row) const;

  const DocumentStore& documents_;
  RowOptions options_;
  int64_t epoch_ = -1;
  int64_t rows_ = 0;
  std::vector<int32_t> order_;      // (groups)
  std::vector<int32_t> row_begin_;  // (groups + 1), of which rows + 1 are in use
  std::vector<int32_t> waiting_;    // (kWaiting)
};

}  // namespace snug::text
