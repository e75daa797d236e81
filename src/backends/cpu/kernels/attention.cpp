#include "backends/cpu/kernels/attention.h"

#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr int64_t kKeyBlock = 64;
constexpr float kLowest = -__FLT_MAX__;

template <typename A, typename B>
float dot(const A* a, const B* b, int64_t n) {
  Float16Lanes sum = {};
  for_each_lanes(n, [&](int64_t i, auto part) { sum += load(a + i, part) * load(b + i, part); });
  return reduce_add(sum);
}

// y += factor * x.
template <typename X>
void add_scaled(float factor, const X* x, float* y, int64_t n) {
  for_each_lanes(n, [=](int64_t i, auto part) {
    store(y + i, load(y + i, part) + load(x + i, part) * factor, part);
  });
}

template <typename X>
void attend_query(const AttendQuery& query) {
  const X* k = static_cast<const X*>(query.k.data);
  const X* v = static_cast<const X*>(query.v.data);
  float sums[kLargestHeadDim] = {};
  float largest = kLowest;
  float total = 0.0F;
  for (int64_t block = query.begin; block < query.end; block += kKeyBlock) {
    const int64_t count = query.end - block < kKeyBlock ? query.end - block : kKeyBlock;
    float scores[kKeyBlock];
    float block_largest = largest;
    for (int64_t j = 0; j < count; ++j) {
      scores[j] = query.scale * dot(static_cast<const X*>(query.q),
                                    k + (block + j) * query.k.stride, query.head_dim);
      block_largest = scores[j] > block_largest ? scores[j] : block_largest;
    }
    Float16Lanes block_total = {};
    for_each_lanes(count, [&](int64_t j, auto part) {
      store(scores + j, exp(load(scores + j, part) - block_largest), part);
      block_total += load(scores + j, part);
    });
    const float correction = reduce_max(exp(splat(largest - block_largest)));
    total = total * correction + reduce_add(block_total);
    for_each_lanes(query.head_dim, [&](int64_t i, auto part) {
      store(sums + i, load(sums + i, part) * correction, part);
    });
    for (int64_t j = 0; j < count; ++j)
      add_scaled(scores[j], v + (block + j) * query.v.stride, sums, query.head_dim);
    largest = block_largest;
  }
  X* o = static_cast<X*>(query.o);
  for_each_lanes(query.head_dim, [&](int64_t i, auto part) {
    store(o + i, load(sums + i, part) * (1.0F / total), part);
  });
  *query.lse = largest + __builtin_logf(total);
}

template <typename X>
void attend_query_grad(const AttendQueryGrad& query) {
  const X* k = static_cast<const X*>(query.k.data);
  const X* v = static_cast<const X*>(query.v.data);
  const X* q = static_cast<const X*>(query.q);
  const X* d_o = static_cast<const X*>(query.d_o);
  const int64_t d = query.head_dim;
  const float mean = dot(d_o, static_cast<const X*>(query.o), d);
  float sums[kLargestHeadDim] = {};
  for (int64_t j = query.begin; j < query.end; ++j) {
    const float score = query.scale * dot(q, k + j * query.k.stride, d);
    const float p = reduce_max(exp(splat(score - query.lse)));
    const float ds = p * (dot(d_o, v + j * query.v.stride, d) - mean) * query.scale;
    add_scaled(ds, k + j * query.k.stride, sums, d);
    add_scaled(ds, q, query.dk + j * d, d);
    add_scaled(p, d_o, query.dv + j * d, d);
  }
  X* dq = static_cast<X*>(query.dq);
  for_each_lanes(d, [&](int64_t i, auto part) { store(dq + i, load(sums + i, part), part); });
}

}  // namespace

extern const AttentionKernels kAttentionKernels;
const AttentionKernels kAttentionKernels = {
    .attend_query = {attend_query<float>, attend_query<uint16_t>},
    .attend_query_grad = {attend_query_grad<float>, attend_query_grad<uint16_t>},
};

}  // namespace snug::backends::cpu::SNUG_ISA
