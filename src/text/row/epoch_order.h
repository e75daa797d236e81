// In which order an epoch goes through the documents, in groups of those that belong together, and
// which of them share a row. A pure
// function of the documents' lengths, the seed and the epoch: not of batch size or ranks.
// The memory is taken once, when the object is made; make reuses it. One thread.
#pragma once

#include <cstdint>
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

}  // namespace snug::text
