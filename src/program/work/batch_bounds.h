// What the host knows of the tensors of a batch that say how much of it there is to do: `targets`,
// of which negative ones carry no loss, `query_bounds` and `key_bounds` of each stream, [begin,
// end) of each segment in tokens (of the keys of a cache: its length so far), and `slots`, of which
// negative ones are written nowhere. Shapes hold the most there may be; kinds name these tensors as
// their extents (kinds/traits.h), and extent.h says how much follows from them.
//
// Pure values; spans refer to the host's memory, which must outlive them.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "base/token_streams.h"
#include "program/ir/tensor.h"

namespace snug::program {

// What a plan expects the tensors of a batch to hold, before there is one.
struct ExpectedBounds {
  // query_bounds and key_bounds: tokens of each segment, where segments of one length fill the
  // rows of a stream. 0: as long as shapes and attributes allow.
  base::PerStream<double> mean_segment_tokens = 0;
  double trained_fraction = 1.0;  // targets: the share of rows that carry loss
};

// Rows full of tokens that all carry loss, in segments of so many.
ExpectedBounds full_rows(const base::PerStream<int64_t>& segment_tokens);

// Bounds that last longer than a batch are of one segment: all rows that they are of. A program
// that loads makes them (program/kinds/transfer/storage.h, put_bounds), and no batch changes them.
inline bool hold_all_rows(const Tensor& bounds) { return bounds.lifetime == Lifetime::run; }

// Entries of `targets` or `slots` that ask for work: those that are not negative.
int64_t rows_with_work(std::span<const int32_t> entries);

// Segments of (segments, 2) bounds, and the tokens of one of them; 0 where it is unused.
inline int64_t segment_count(std::span<const int32_t> bounds) {
  return static_cast<int64_t>(bounds.size() / 2);
}
int64_t tokens_of_segment(std::span<const int32_t> bounds, int64_t segment);

// Adds rows up, one after the other, and gives means of them.
class MeanBounds {
 public:
  // The tokens that a row takes of a stream, and the host's copy of its query bounds.
  struct StreamRow {
    int64_t tokens = 0;
    std::span<const int32_t> query_bounds;
  };
  // As many targets as the row has tokens of the decoder. All rows have the same streams.
  void add_row(std::span<const int32_t> targets, const base::PerStream<StreamRow>& streams);
  // The segments' length is the one at which full rows of equal segments would make attention do
  // the same work: long documents count by their square.
  ExpectedBounds expected() const;

 private:
  double trained_ = 0;
  base::PerStream<double> tokens_ = 0;
  base::PerStream<double> squares_ = 0;
};

// For the tensors of one program: the values of a batch, or what is expected of tensors that have
// no values yet.
class BatchBounds {
 public:
  // Nothing is known: all that shapes and attributes allow.
  BatchBounds() = default;
  BatchBounds(const ExpectedBounds& expected) : expected_(expected) {}  // NOLINT: a plan's are such

  void set(TensorId tensor, std::span<const int32_t> values) { values_[tensor] = values; }
  // Empty where the host has no values of the tensor.
  std::span<const int32_t> operator[](TensorId tensor) const;
  const ExpectedBounds& expected() const { return expected_; }

 private:
  std::map<TensorId, std::span<const int32_t>> values_;
  ExpectedBounds expected_;
};

}  // namespace snug::program
