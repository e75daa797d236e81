// Shared by the forward and the backward pass of attention, for kernel files only: which keys a
// query sees, and dividing scratch into pieces.
#pragma once

#include "backends/cpu/attention/kernels/attention.h"
#include "backends/cpu/product/kernels/block_packing.h"

namespace snug::backends::cpu::SNUG_ISA {

// The first key that query i sees, and one past the last key. Neither decreases as i grows.
SNUG_INLINE int64_t first_key(const AttentionForm& form, int64_t i) {
  if (form.window == 0) return 0;
  return larger_of(0, i + form.keys - form.queries - form.window + 1);
}
SNUG_INLINE int64_t end_key(const AttentionForm& form, int64_t i) {
  if (!form.causal) return form.keys;
  return larger_of(0, smaller_of(form.keys, i + form.keys - form.queries + 1));
}

// Keys whose rows follow one another.
struct KeyRun {
  int64_t key, row, count;
};

// Calls f(run) for keys [begin, begin + n), in order; runs end where pages do.
template <typename F>
SNUG_INLINE void for_each_run(const KeyPages& pages, int64_t begin, int64_t n, F f) {
  if (pages.table == nullptr) return f(KeyRun{begin, begin, n});
  int64_t page = (pages.first + begin) / pages.page_tokens;
  int64_t offset = (pages.first + begin) % pages.page_tokens;
  for (int64_t key = begin; key < begin + n; ++page, offset = 0) {
    const int64_t count = smaller_of(pages.page_tokens - offset, begin + n - key);
    f(KeyRun{key, pages.table[page] * pages.page_tokens + offset, count});
    key += count;
  }
}

// Whether keys and values stored so have scales.
template <typename Key>
inline constexpr bool kHasScales = sizeof(Key) == 1;

// Copies the scales of keys [begin, begin + n) of a head.
SNUG_INLINE void copy_scales(const KeyPages& pages, const HeadRows& rows, int64_t begin, int64_t n,
                             float* to) {
  for_each_run(pages, begin, n, [&](const KeyRun& run) {
    __builtin_memcpy(to + (run.key - begin), rows.scales + run.row,
                     static_cast<uint64_t>(run.count) * sizeof(float));
  });
}

// The keys that `rows` queries, starting at `query`, see.
template <int64_t rows>
struct Seen {
  int32_t begin[rows];
  int32_t end[rows];
};

template <int64_t rows>
SNUG_INLINE Seen<rows> seen_by(const AttentionForm& form, int64_t query) {
  Seen<rows> seen;
  for (int64_t i = 0; i < rows; ++i) {
    seen.begin[i] = static_cast<int32_t>(first_key(form, query + i));
    seen.end[i] = static_cast<int32_t>(end_key(form, query + i));
  }
  return seen;
}

SNUG_INLINE Int16Lanes load_integers(const int32_t* x) {
#if defined(__AVX512F__)
  Int16Lanes v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
#else
  return load_lanes(x);
#endif
}

// Whether each of sixteen queries of `seen`, starting at i, sees the key.
template <int64_t rows>
SNUG_INLINE Int16Lanes sees(const Seen<rows>& seen, int64_t i, int64_t key) {
  const Int16Lanes this_key = Int16Lanes{} + static_cast<int32_t>(key);
  return (this_key >= load_integers(seen.begin + i)) & (this_key < load_integers(seen.end + i));
}

template <typename A, typename B>
SNUG_INLINE float dot(const A* a, const B* b, int64_t n) {
  Float16Lanes sum = {};
  for_each_lanes(n, [&](int64_t i, auto part) { sum += load(a + i, part) * load(b + i, part); });
  return reduce_add(sum);
}

// Hands out pieces of scratch that begin on cache lines. With a null start it only counts bytes.
class Scratch {
 public:
  explicit Scratch(void* start) : next_(static_cast<char*>(start)), start_(next_) {}

  template <typename T>
  T* take(int64_t count) {
    T* piece = reinterpret_cast<T*>(next_);
    next_ += round_up(count * int64_t{sizeof(T)}, 64);
    return piece;
  }
  int64_t bytes() const { return next_ - start_; }

 private:
  char* next_;
  char* start_;
};

// The rows of head `head` of a group, starting at row `row`.
template <typename Stored>
SNUG_INLINE RowBlock<const Stored> head_block(const HeadRows& rows, int64_t row, int64_t head,
                                              int64_t head_dim) {
  return {static_cast<const Stored*>(rows.data) + row * rows.stride + head * head_dim, rows.stride};
}

}  // namespace snug::backends::cpu::SNUG_ISA
