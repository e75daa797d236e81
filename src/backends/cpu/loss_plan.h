// How a linear cross-entropy is cut: rows that carry loss go through the head in chunks of fixed
// sizes, each with products made beforehand, and the workspace holds one chunk.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/product.h"

namespace snug::backends::cpu {

// Rows of logits that exist at once, for both linear kinds.
int64_t default_chunk_rows(int64_t vocab, int64_t tokens);

// What a linear cross-entropy works on; types of what is not written are ignored.
struct LossShape {
  int64_t tokens = 0;
  int64_t width = 0;
  int64_t vocab = 0;
  int64_t chunk_rows = 0;               // 0: the default
  base::DType type = base::DType::f32;  // of hidden and weight
  int64_t weight_stride = 0;
  bool train = false;
  base::DType dhidden_type = base::DType::f32;
  bool weight_gradient = false;
  bool accumulate = false;
  base::DType dweight_type = base::DType::f32;
  int64_t dweight_stride = 0;
};

// Products over `rows` rows.
struct LossChunk {
  int64_t rows;
  Product logits;
  std::optional<Product> dhidden;
  std::optional<Product> dweight_first;  // overwrites the weight's gradient
  std::optional<Product> dweight_next;   // adds to it
};

class LossPlan : public Prepared {
 public:
  LossPlan(const LossShape& shape, const CpuContext& context);
  void create() const;
  const LossShape& shape() const { return shape_; }
  // The chunk that `rows` rows, still to go, begin with. It may be larger: absent rows are zeros.
  const LossChunk& next(int64_t rows) const;

  // The workspace, by offsets in bytes. Row numbers: (tokens) i32. Hidden: a chunk's rows gathered,
  // later their gradients. Logits: f32, and in the same place their gradients in `type`, without
  // gaps.
  int64_t rows_offset() const { return 0; }
  int64_t hidden_offset() const { return hidden_offset_; }
  int64_t logits_offset() const { return logits_offset_; }
  int64_t scratch_offset() const { return scratch_offset_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  LossShape shape_;
  std::vector<LossChunk> chunks_;  // largest first
  int64_t hidden_offset_ = 0;
  int64_t logits_offset_ = 0;
  int64_t scratch_offset_ = 0;
  int64_t workspace_bytes_ = 0;
};

}  // namespace snug::backends::cpu
