// How a linear cross-entropy is cut up. Rows that carry loss go through the head in chunks of fixed
// sizes, whose products are prepared in advance, and the workspace holds one chunk. A chunk's
// logits are stored in blocks of columns, one after another: oneDNN computes the products of a
// block two to four times as fast as those of a whole vocabulary. The operation states the sizes of
// both.
#pragma once

#include <optional>
#include <vector>

#include "backends/cpu/loss/loss_shape.h"
#include "backends/cpu/product/product.h"
#include "backends/invocation.h"

namespace snug::backends::cpu {

// The number of rows whose logits exist at once, for both linear kinds.
int64_t default_chunk_rows(int64_t vocab, int64_t tokens);
// The number of columns in a block of logits.
int64_t default_block_columns(int64_t vocab);

// The shape with the algorithms of its products, which all chunks share: the fastest for the
// largest chunk if it can compute all of them; else the library or, without one, Snug's own kernel
// for any shape. Also sets how many rows the weight's gradient sums at once. Requires that the
// chunk's rows and the block's columns are set.
LossShape with_algorithms(LossShape shape, const CpuContext& context);

// Whether an algorithm of the shape would copy a matrix to remove gaps, as the library does for a
// head with gaps between its rows. Such a loss is not planned here.
bool copies_matrices(const LossShape& shape);

// The products of a chunk of `rows` rows with one block of columns.
struct BlockProducts {
  Product logits;                        // (rows, columns) f32
  std::optional<Product> dhidden_first;  // (rows, width) f32, overwritten
  std::optional<Product> dhidden_next;   // the same, added to the result so far
  std::optional<Product> dweight_first;  // (columns, width), overwritten
  std::optional<Product> dweight_next;   // the same, added to the result so far
};

struct LossChunk {
  int64_t rows;
  BlockProducts whole;
  std::optional<BlockProducts> rest;  // for the remaining columns, if there are any
};

class LossPlan : public Prepared {
 public:
  // Fails a CHECK where an algorithm of the shape cannot compute one of its products, or would copy
  // operands for it.
  LossPlan(const LossShape& shape, const CpuContext& context);
  void create() const;
  const LossShape& shape() const { return shape_; }
  // The chunk for the next of `rows` remaining rows, as the operation's algorithm says
  // (program::next_halved_chunk). It may be larger than the remaining rows; missing rows are zeros.
  const LossChunk& next(int64_t rows) const;

  // The number of columns of all blocks except the last, and of block `block`.
  int64_t block_columns() const { return shape_.block_columns; }
  int64_t columns(int64_t block) const;
  int64_t blocks() const;
  const BlockProducts& products(const LossChunk& chunk, int64_t block) const;

  // The parts of the workspace, by their offsets in bytes. Row numbers: (tokens) i32. Hidden: a
  // chunk's gathered rows. Dhidden: their gradients, f32. Logits: block after block, f32, each
  // overwritten by its gradient in `type`, without gaps. Products: the input of a gain, laid out
  // likewise; where the gain has no gradient, in the same place as the logits. Vectors: those of
  // LossVectors.
  int64_t hidden_offset() const { return hidden_offset_; }
  int64_t dhidden_offset() const { return dhidden_offset_; }
  int64_t logits_offset(const LossChunk& chunk, int64_t block) const;
  int64_t product_offset(const LossChunk& chunk, int64_t block) const {
    return logits_offset(chunk, block) + product_offset_ - logits_offset_;
  }
  int64_t vectors_offset() const { return vectors_offset_; }
  int64_t scratch_offset() const { return scratch_offset_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  void lay_out();

  LossShape shape_;
  std::vector<LossChunk> chunks_;  // largest first
  int64_t hidden_offset_ = 0;
  int64_t dhidden_offset_ = 0;
  int64_t logits_offset_ = 0;
  int64_t product_offset_ = 0;
  int64_t vectors_offset_ = 0;
  int64_t scratch_offset_ = 0;
  int64_t workspace_bytes_ = 0;
};

}  // namespace snug::backends::cpu
