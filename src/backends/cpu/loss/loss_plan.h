// How a linear cross-entropy is cut. Rows that carry loss go through the head in chunks of fixed
// sizes, each with products made beforehand, and the workspace holds one chunk. A chunk's logits
// lie in blocks of columns, one block after the other: oneDNN runs the products of a block two to
// four times as fast as those of a whole vocabulary. The operation states the sizes of both.
#pragma once

#include <optional>
#include <vector>

#include "backends/cpu/loss/loss_shape.h"
#include "backends/cpu/product/product.h"
#include "backends/invocation.h"

namespace snug::backends::cpu {

// Rows of logits that exist at once, for both linear kinds.
int64_t default_chunk_rows(int64_t vocab, int64_t tokens);
// Columns of the blocks in which they are made.
int64_t default_block_columns(int64_t vocab);

// Shape with the algorithms of its products, which all chunks share: what is the fastest for the
// largest chunk where it computes all of them, else the library or, where there is none, the own
// kernel for any shape; and in what steps of rows the weight's gradient is summed. Requires the
// chunk's rows and the block's columns.
LossShape with_algorithms(LossShape shape, const CpuContext& context);

// Whether an algorithm of the shape would copy a matrix to be without gaps, as the library does of
// a head with gaps between its rows. No such loss is planned here.
bool copies_matrices(const LossShape& shape);

// Products of a chunk of `rows` rows with one block of columns.
struct BlockProducts {
  Product logits;                        // (rows, columns) f32
  std::optional<Product> dhidden_first;  // (rows, width) f32, overwritten
  std::optional<Product> dhidden_next;   // added to
  std::optional<Product> dweight_first;  // (columns, width), overwritten
  std::optional<Product> dweight_next;   // added to
};

struct LossChunk {
  int64_t rows;
  BlockProducts whole;
  std::optional<BlockProducts> rest;  // of the last columns, where the vocabulary is not divisible
};

class LossPlan : public Prepared {
 public:
  // Fails a CHECK where an algorithm of the shape does not compute a product of it, or copies for
  // it.
  LossPlan(const LossShape& shape, const CpuContext& context);
  void create() const;
  const LossShape& shape() const { return shape_; }
  // The chunk that `rows` rows, still to go, begin with, as the operation's algorithm says
  // (program::next_halved_chunk). It may be larger: absent rows are zeros.
  const LossChunk& next(int64_t rows) const;

  // Columns of all blocks but the last, and of block `block`.
  int64_t block_columns() const { return shape_.block_columns; }
  int64_t columns(int64_t block) const;
  int64_t blocks() const;
  const BlockProducts& products(const LossChunk& chunk, int64_t block) const;

  // The workspace, by offsets in bytes. Row numbers: (tokens) i32. Hidden: a chunk's rows,
  // gathered. Dhidden: their gradients, f32. Logits: block after block, f32, and in the place of
  // each block its gradient in `type`, without gaps. Products: what a gain multiplies, likewise;
  // where its gradient is not made, in the place of logits. Vectors: those of LossVectors.
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
