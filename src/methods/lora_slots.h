// Several LoRA adapters next to one another, of which each row of a batch has one or none:
//
//   before   y = matmul(x, W) {transpose_b}
//   after    y.base   = matmul(x, W) {transpose_b}
//            y.all    = matmul(x, A) {transpose_b}         (rows, (slots + 1) rank)
//            y.chosen = embedding(y.all, adapter_rows)     y.all seen as (rows (slots + 1), rank),
//                                                          y.chosen as (rows slots, rank)
//            y.delta  = matmul(y.chosen, B)                y.chosen seen as (rows, slots rank)
//            y        = add(y.base, y.delta)
//
// A ((slots + 1) rank, in) has zeros first and then the A of each slot; B (slots rank, out) has the
// transposed B of each slot times its scale. An adapter of a smaller rank, or that does not change
// the module, leaves zeros. `adapter_rows` (rows slots) i32 is a batch tensor that takes from y.all
// what belongs to the row's own slot, and zeros for all others (chosen_rows).
//
// Every row is multiplied by all slots and not by its own alone. Grouped products, as experts have
// them, cut the rows of a group into pieces whose sums have different orders, so that the bits of a
// row would depend on how many of its neighbours have the same adapter.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/ir/program.h"

namespace snug::methods {

struct LoraSlots {
  // Whole names of the linears that some slot may change: "model.layers.0.self_attn.q_proj".
  std::vector<std::string> modules{};
  int64_t slots = 0;
  int64_t rank = 0;  // the largest that an adapter may have

  bool empty() const { return slots == 0; }
};

// A row without an adapter.
inline constexpr int64_t kNoAdapter = -1;

// The forward program of a decoder, whose batch tensors are named after it.
program::Program with_lora_slots(const program::Program& forward, const LoraSlots& slots);

// What `adapter_rows` has for a row, one number for each slot.
void chosen_rows(int64_t row, int64_t slot, std::span<int32_t> chosen);

// The names of a module's tensors, which have role adapter.
std::string slots_a_name(std::string_view module);
std::string slots_b_name(std::string_view module);

// The linears of a forward program that can have slots, in its order.
std::vector<std::string> slot_modules(const program::Program& forward);

}  // namespace snug::methods
