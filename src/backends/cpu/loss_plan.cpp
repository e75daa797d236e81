#include "backends/cpu/loss_plan.h"

#include <algorithm>

#include "backends/cpu/parallel.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

// Below this many rows a product with the head runs at the speed of reading the weight, so smaller
// chunks save nothing but bytes.
constexpr int64_t kLeastRows = 64;

constexpr int64_t round_up(int64_t bytes) { return ceil_div(bytes, 64) * 64; }

// (rows, vocab) = hidden weight^T.
MatmulSpec logits_spec(const LossShape& shape, int64_t rows) {
  MatmulSpec spec{.m = rows, .n = shape.vocab, .k = shape.width};
  spec.a_type = spec.b_type = shape.type;
  spec.a_strides[0] = shape.width;
  spec.b_strides[0] = 1;
  spec.b_strides[1] = shape.weight_stride;
  spec.c_stride = shape.vocab;
  return spec;
}

// (rows, width) = dlogits weight.
MatmulSpec dhidden_spec(const LossShape& shape, int64_t rows) {
  MatmulSpec spec{.m = rows, .n = shape.width, .k = shape.vocab};
  spec.a_type = spec.b_type = shape.type;
  spec.c_type = shape.dhidden_type;
  spec.a_strides[0] = shape.vocab;
  spec.b_strides[0] = shape.weight_stride;
  spec.c_stride = shape.width;
  return spec;
}

// (vocab, width) = dlogits^T hidden.
MatmulSpec dweight_spec(const LossShape& shape, int64_t rows, MatmulSpec::Add add) {
  MatmulSpec spec{.m = shape.vocab, .n = shape.width, .k = rows};
  spec.a_type = spec.b_type = shape.type;
  spec.c_type = shape.dweight_type;
  spec.a_strides[0] = 1;
  spec.a_strides[1] = shape.vocab;
  spec.b_strides[0] = shape.width;
  spec.c_stride = shape.dweight_stride;
  spec.add = add;
  return spec;
}

LossChunk chunk_of(const LossShape& shape, int64_t rows, const CpuContext& context) {
  LossChunk chunk{.rows = rows,
                  .logits = Product(logits_spec(shape, rows), context),
                  .dhidden = {},
                  .dweight_first = {},
                  .dweight_next = {}};
  if (shape.train) chunk.dhidden.emplace(dhidden_spec(shape, rows), context);
  if (!shape.weight_gradient) return chunk;
  chunk.dweight_next.emplace(dweight_spec(shape, rows, MatmulSpec::Add::destination), context);
  if (!shape.accumulate)
    chunk.dweight_first.emplace(dweight_spec(shape, rows, MatmulSpec::Add::nothing), context);
  return chunk;
}

template <typename F>
void for_each_product(const LossChunk& chunk, F&& f) {
  f(chunk.logits);
  if (chunk.dhidden) f(*chunk.dhidden);
  if (chunk.dweight_first) f(*chunk.dweight_first);
  if (chunk.dweight_next) f(*chunk.dweight_next);
}

}  // namespace

// Logits of a chunk stay below 128 MiB; rows are a power of two, so that few shapes arise.
int64_t default_chunk_rows(int64_t vocab, int64_t tokens) {
  constexpr int64_t kLogitsBytes = int64_t{128} << 20;
  constexpr int64_t kMostRows = 2048;
  int64_t rows = kLeastRows;
  while (rows < std::min(kMostRows, tokens) && rows * 2 * vocab * 4 <= kLogitsBytes) rows *= 2;
  return rows;
}

LossPlan::LossPlan(const LossShape& shape, const CpuContext& context) : shape_(shape) {
  if (shape_.chunk_rows == 0) shape_.chunk_rows = default_chunk_rows(shape_.vocab, shape_.tokens);
  for (int64_t rows = shape_.chunk_rows;; rows /= 2) {
    chunks_.push_back(chunk_of(shape_, rows, context));
    if (rows / 2 < kLeastRows) break;
  }
  const int64_t hidden_size =
      std::max(base::size_of(shape_.type), shape_.train ? base::size_of(shape_.dhidden_type) : 0);
  hidden_offset_ = round_up(shape_.tokens * static_cast<int64_t>(sizeof(int32_t)));
  logits_offset_ = hidden_offset_ + round_up(shape_.chunk_rows * shape_.width * hidden_size);
  scratch_offset_ = logits_offset_ + round_up(shape_.chunk_rows * shape_.vocab *
                                              static_cast<int64_t>(sizeof(float)));
  int64_t scratch = 0;
  for (const LossChunk& chunk : chunks_)
    for_each_product(chunk, [&](const Product& product) {
      scratch = std::max(scratch, product.scratch_bytes());
    });
  workspace_bytes_ = scratch_offset_ + scratch;
}

void LossPlan::create() const {
  for (const LossChunk& chunk : chunks_)
    for_each_product(chunk, [](const Product& product) { product.create(); });
}

// The smallest chunk that takes all rows, if at least three quarters of it are used; else the
// largest that is filled, so that many short rests cost no more than the rows they have.
const LossChunk& LossPlan::next(int64_t rows) const {
  const LossChunk* chosen = &chunks_.front();
  for (const LossChunk& chunk : chunks_) {
    if (chunk.rows * 3 <= rows * 4) return chunk;
    chosen = &chunk;
  }
  return *chosen;
}

}  // namespace snug::backends::cpu
