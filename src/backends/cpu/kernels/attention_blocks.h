// What the forward and the backward pass of attention share, for kernel files only: which keys a
// query sees, and scratch cut into pieces.
#pragma once

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/block_packing.h"

namespace snug::backends::cpu::SNUG_ISA {

SNUG_INLINE int64_t smaller_of(int64_t a, int64_t b) { return a < b ? a : b; }
SNUG_INLINE int64_t larger_of(int64_t a, int64_t b) { return a > b ? a : b; }

// First key that query i sees, and one past the last. Neither falls with i.
SNUG_INLINE int64_t first_key(const AttentionForm& form, int64_t i) {
  if (form.window == 0) return 0;
  return larger_of(0, i + form.keys - form.queries - form.window + 1);
}
SNUG_INLINE int64_t end_key(const AttentionForm& form, int64_t i) {
  if (!form.causal) return form.keys;
  return larger_of(0, smaller_of(form.keys, i + form.keys - form.queries + 1));
}

// Hands out pieces of scratch, each from a cache line on. With a null start it only counts.
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

// The rows of head h of a group, from row `row` on.
template <typename Stored>
SNUG_INLINE RowBlock<const Stored> head_block(const HeadRows& rows, int64_t row, int64_t head,
                                              int64_t head_dim) {
  return {static_cast<const Stored*>(rows.data) + row * rows.stride + head * head_dim, rows.stride};
}

}  // namespace snug::backends::cpu::SNUG_ISA
