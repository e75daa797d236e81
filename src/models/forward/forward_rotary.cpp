// The rotary tables of the streams, and the rotation of queries and keys by them.
#include <string>
#include <variant>

#include "base/error.h"
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

// Whether a program of sequences of at most this length (0: unknown) has queries that grow with
// their positions.
bool queries_grow(const Rotary& rotary, int64_t sequence_tokens) {
  if (rotary.rope.query_beta == 0) return false;
  return sequence_tokens == 0 || sequence_tokens > rotary.rope.original_max_position;
}

int64_t head_dim_of(const Stack& stack) {
  return std::get<AttentionBlock>(stack.layers.front().branches.front().block).head_dim;
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
    const auto table = [&](const char* name, const RotaryTable& attributes) {
      const TensorId made = builder_.activation(
          stream_name(stream, name), {options_.tokens[stream], rotary.width}, DType::f32);
      builder_.emit(attributes, {positions, frequencies_[local]}, {made});
      return made;
    };
    RotaryTable attributes{.factor = static_cast<float>(rotary.rope.attention_factor)};
    rotary_tables_[static_cast<size_t>(stream)][local] =
        table(local == 1 ? "rotary_table.local" : "rotary_table", attributes);
    if (local == 1 || !queries_grow(rotary, options_.sequence_tokens)) continue;
    SNUG_CHECK(stream == base::TokenStream::decoder && rotary.width == head_dim_of(stack_),
               "queries that grow are those of a decoder, and rotated as a whole");
    attributes.growth = static_cast<float>(rotary.rope.query_beta);
    attributes.period = rotary.rope.original_max_position;
    query_table_ = table("rotary_table.queries", attributes);
  }
}

TensorId ForwardBuilder::rope(TensorId x, const AttentionBlock& by, const char* name,
                              const Rotated& rows) {
  if (!by.rotated) return x;
  const TensorId y = activation(name, columns(x), this->rows(x));
  const size_t local = by.local_rotary ? 1 : 0;
  const Rotary& rotary = rotary_of(stack_, local);
  const bool has_own_table = query_table_ != kNone && local == 0;
  SNUG_CHECK(!has_own_table || rows.heads == 0, "queries that grow are fused with keys: {}", name);
  const TensorId table = has_own_table && rows.are_queries
                             ? query_table_
                             : rotary_tables_[static_cast<size_t>(rows.stream)][local];
  builder_.emit(Rope{.head_dim = by.head_dim,
                     .rotated_heads = rows.heads,
                     .rotary_dim = rotary.width == by.head_dim ? 0 : rotary.width,
                     .interleaved = rotary.interleaved},
                {x, table}, {y});
  return y;
}

}  // namespace snug::models
