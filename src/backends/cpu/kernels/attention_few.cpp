// The forward pass of a few queries, as in generation: keys and values are read once, where they
// lie, and packing them would cost more than it saves.
#include "backends/cpu/kernels/attention_blocks.h"
#include "backends/cpu/kernels/exp2.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr int64_t kKeyBlock = 64;
constexpr float kLowest = -__FLT_MAX__;

template <typename X>
float dot(const X* a, const X* b, int64_t n) {
  Float16Lanes sum = {};
  for_each_lanes(n, [&](int64_t i, auto part) { sum += load(a + i, part) * load(b + i, part); });
  return reduce_add(sum);
}

// One query of one head: a softmax over blocks of keys, against the largest score so far.
struct Row {
  float sums[kLargestHeadDim];
  float scores[kKeyBlock];
  float largest;
  float total;
};

template <typename X>
void add_block(const AttentionTile& tile, const X* q, int64_t begin, int64_t count, Row& row) {
  const int64_t d = tile.form.head_dim;
  const X* k = static_cast<const X*>(tile.k.data) + begin * tile.k.stride;
  const X* v = static_cast<const X*>(tile.v.data) + begin * tile.v.stride;
  const float factor = tile.form.scale * kLog2OfE;
  float largest = row.largest;
  for (int64_t j = 0; j < count; ++j) {
    row.scores[j] = factor * dot(q, k + j * tile.k.stride, d);
    largest = largest >= row.scores[j] ? largest : row.scores[j];
  }
  const float correction = exp2(splat(row.largest - largest))[0];
  Float16Lanes total = {};
  for_each_lanes(count, [&](int64_t j, auto part) {
    store(row.scores + j, exp2(load(row.scores + j, part) - largest), part);
    total += load(row.scores + j, part);
  });
  row.total = row.total * correction + reduce_add(total);
  row.largest = largest;
  for_each_lanes(d, [&](int64_t i, auto part) {
    Float16Lanes sum = load(row.sums + i, part) * correction;
    for (int64_t j = 0; j < count; ++j)
      sum += load(v + j * tile.v.stride + i, part) * row.scores[j];
    store(row.sums + i, sum, part);
  });
}

template <typename X>
void attend_query(const AttentionTile& tile, int64_t head, int64_t i) {
  const int64_t d = tile.form.head_dim;
  const X* q = head_block<X>(tile.q, i, head, d).data;
  const int64_t end = end_key(tile.form, i);
  Row row;
  store_zeros(row.sums, d);
  row.largest = kLowest;
  row.total = 0.0F;
  bool saw = false;
  for (int64_t begin = first_key(tile.form, i); begin < end; begin += kKeyBlock) {
    add_block(tile, q, begin, smaller_of(kKeyBlock, end - begin), row);
    saw = true;
  }
  const float share = saw ? 1.0F / row.total : 0.0F;
  X* o = static_cast<X*>(tile.o) + i * tile.o_stride + head * d;
  for_each_lanes(
      d, [&](int64_t j, auto part) { store(o + j, load(row.sums + j, part) * share, part); });
  tile.lse[head * tile.lse_stride + i] =
      saw ? row.largest * kLogOf2 + __builtin_logf(row.total) : 0.0F;
}

template <typename X>
void attend(const AttentionTile& tile) {
  for (int64_t i = tile.begin; i < tile.end; ++i)
    for (int64_t head = 0; head < tile.form.group; ++head) attend_query<X>(tile, head, i);
}

}  // namespace

extern const AttentionFewKernels kAttentionFewKernels;
const AttentionFewKernels kAttentionFewKernels = {.attend = {attend<float>, attend<uint16_t>}};

}  // namespace snug::backends::cpu::SNUG_ISA
