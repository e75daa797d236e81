// The rotary tables of the streams, and the rotation of queries and keys by them.
#include <string>

#include "models/config/rope.h"
#include "models/forward/forward_builder.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/attention/rope.h"

namespace snug::models {

using namespace program;  // NOLINT: this file speaks the program's words throughout

namespace {

const Rotary& rotary_of(const Stack& stack, size_t local) {
  return local == 1 ? *stack.local_rotary : stack.rotary;
}

}  // namespace

void ForwardBuilder::declare_frequencies() {
  for (size_t local = 0; local < frequencies_.size(); ++local) {
    const bool is_read =
        reads_rotary(stack_, base::TokenStream::decoder, local == 1) ||
        (runs_encoder() && reads_rotary(stack_, base::TokenStream::encoder, local == 1));
    if (!is_read) continue;
    const Rotary& rotary = rotary_of(stack_, local);
    frequencies_[local] = declare(
        local == 1 ? local_frequencies_name() : frequencies_name(rotary, options_.sequence_tokens),
        {rotary.width / 2}, DType::f32, Role::scalar, Lifetime::run);
  }
}

void ForwardBuilder::make_rotary_tables(base::TokenStream stream, TensorId positions) {
  for (size_t local = 0; local < frequencies_.size(); ++local) {
    if (!reads_rotary(stack_, stream, local == 1)) continue;
    const Rotary& rotary = rotary_of(stack_, local);
    const TensorId table =
        builder_.activation(stream_name(stream, local == 1 ? "rotary_table.local" : "rotary_table"),
                            {options_.tokens[stream], rotary.width}, DType::f32);
    builder_.emit(RotaryTable{.factor = static_cast<float>(rotary.rope.attention_factor)},
                  {positions, frequencies_[local]}, {table});
    rotary_tables_[static_cast<size_t>(stream)][local] = table;
  }
}

TensorId ForwardBuilder::rope(TensorId x, const AttentionBlock& by, const char* name,
                              const Rotated& rows) {
  if (!by.rotated) return x;
  const TensorId y = activation(name, columns(x), this->rows(x));
  const size_t local = by.local_rotary ? 1 : 0;
  const Rotary& rotary = rotary_of(stack_, local);
  builder_.emit(Rope{.head_dim = by.head_dim,
                     .rotated_heads = rows.heads,
                     .rotary_dim = rotary.width == by.head_dim ? 0 : rotary.width,
                     .interleaved = rotary.interleaved},
                {x, rotary_tables_[static_cast<size_t>(rows.stream)][local]}, {y});
  return y;
}

}  // namespace snug::models
