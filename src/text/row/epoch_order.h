// In which order an epoch goes through the documents, and which of them share a row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/row/document_store.h"
#include "text/row/epoch_shares.h"

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
  // What an epoch takes of the documents, in groups: all, part by part. Empty: each once.
  std::vector<EpochPart> parts{};
};

// In which order an epoch goes through the documents, in groups of those that belong together, and
// which of them share a row. A pure function of the documents' lengths, the seed and the epoch: not
// of batch size or ranks. The memory is taken once, when the object is made; make reuses it. One
// thread.
//
// A part whose documents an epoch does not take once each is gone through in cycles without end,
// each a pass through all of them, of which epoch e takes the places [e * taken, (e + 1) * taken).
// So after any epoch each document of a part came as often as any other, or once more. When
// documents are shuffled, a cycle that no epoch takes whole has an order of its own.
class EpochOrder {
 public:
  EpochOrder(const DocumentStore& documents, const RowOptions& options);

  // Rows of another size from here on; no epoch is made of them yet. Requires what the constructor
  // does; allocates nothing.
  void set_rows(const PerStream<int32_t>& max_length, int32_t max_segments);

  // Takes the documents of the epoch, shuffles and packs them. Packing is first fit over the
  // shuffled order: a row takes the next document that fits; one that does not waits, at most
  // kWaiting of them, and goes first into the next row. Nothing is left out and no document spans
  // rows.
  void make(int64_t epoch);

  // Of each epoch.
  int64_t groups() const { return static_cast<int64_t>(order_.size()); }
  // Whether an epoch takes each document once, or as often as any other epoch takes it.
  bool takes_each_once() const;
  bool takes_alike() const;

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
  void take_documents();
  // Takes those of one part, which begin at group `begin`.
  void take_part(size_t part, int64_t begin, std::span<int32_t> taken) const;
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
  std::vector<int32_t> order_;      // (groups of an epoch)
  std::vector<int32_t> row_begin_;  // (groups of an epoch + 1), of which rows + 1 are used
  std::vector<int32_t> waiting_;    // (kWaiting)
};

}  // namespace snug::text
