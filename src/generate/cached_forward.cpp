#include "generate/cached_forward.h"

#include <algorithm>

#include "base/error.h"
#include "program/tensor_names.h"

namespace snug::generate {

using base::TokenStream;
using program::ProgramName;

CachedForward::CachedForward(Inference& inference)
    : inference_(inference),
      spec_(inference.spec()),
      prefill_(batch_of(ProgramName::prefill, TokenStream::decoder, spec_.prefill_tokens)),
      lengths_(spec_.capacity.map(
          [&](int64_t) { return std::vector<int64_t>(static_cast<size_t>(spec_.sequences)); })) {
  if (!spec_.all_logits)
    decode_ = batch_of(ProgramName::decode, TokenStream::decoder, spec_.sequences);
}

CachedForward::Batch CachedForward::batch_of(ProgramName program, TokenStream stream,
                                             int64_t tokens) const {
  const auto& executor = inference_.executor();
  const auto host_side = [&](std::string_view name) {
    return executor.tensor(program, program::host_name(own_name(program, name)));
  };
  const auto host = [&](std::string_view name) { return host_side(name).as<int32_t>(); };
  const auto of_stream = [&](std::string_view name) {
    return host(program::stream_name(stream, name));
  };
  const std::string positions = program::stream_name(stream, program::kPositionsName);
  Batch batch;
  batch.program = program;
  batch.stream = stream;
  batch.tokens = tokens;
  batch.ids = of_stream(program::kTokensName);
  if (executor.has(program, program::host_name(own_name(program, positions))))
    batch.positions = host(positions);
  batch.slots = of_stream(program::kSlotsName);
  batch.query_bounds = of_stream(program::kQueryBoundsName);
  batch.key_bounds = of_stream(program::kKeyBoundsName);
  batch.output_rows = host(program::kOutputRowsName);
  batch.outputs = executor.tensor(program, own_name(program, program::kLogitsName)).shape[0];
  if (has_candidates()) {
    batch.likeliest_logits = host_side(program::kLikeliestLogitsName).as<const float>();
    batch.likeliest_ids = host(program::kLikeliestIdsName);
  } else {
    batch.logits = host_side(program::kLogitsName).as<const float>();
  }
  return batch;
}

void CachedForward::clear() {
  for (const TokenStream stream : lengths_.streams()) std::ranges::fill(lengths_[stream], 0);
}

// Every row is padding: a token that is nobody's, kept out of the caches and of attention.
void CachedForward::reset(const Batch& batch, int64_t sequences) {
  inference_.executor().await_inputs(batch.program);
  std::fill_n(batch.ids, batch.tokens, 0);
  if (batch.positions != nullptr) std::fill_n(batch.positions, batch.tokens, 0);
  std::fill_n(batch.slots, batch.tokens, -1);
  std::fill_n(batch.query_bounds, 2 * sequences, 0);
  std::fill_n(batch.key_bounds, 2 * sequences, 0);
  std::fill_n(batch.output_rows, batch.outputs, 0);
}

// Puts the tokens into the batch's rows from `row` on.
void CachedForward::append(const Batch& batch, int64_t row, const SequencePart& part) {
  const auto count = static_cast<int64_t>(part.ids.size());
  int64_t& length = lengths_[batch.stream][static_cast<size_t>(part.sequence)];
  const int64_t capacity = spec_.capacity[batch.stream];
  SNUG_CHECK(row + count <= batch.tokens, "{} tokens in a batch of {}", row + count, batch.tokens);
  SNUG_CHECK(length + count <= capacity, "sequence {} grows to {} tokens of {}", part.sequence,
             length + count, capacity);
  const int64_t first_slot = part.sequence * capacity;
  for (int64_t i = 0; i < count; ++i) {
    batch.ids[row + i] = part.ids[static_cast<size_t>(i)];
    if (batch.positions != nullptr) batch.positions[row + i] = static_cast<int32_t>(length + i);
    batch.slots[row + i] = static_cast<int32_t>(first_slot + length + i);
  }
  length += count;
  batch.query_bounds[2 * part.sequence] = static_cast<int32_t>(row);
  batch.query_bounds[2 * part.sequence + 1] = static_cast<int32_t>(row + count);
  batch.key_bounds[2 * part.sequence] = static_cast<int32_t>(first_slot);
  batch.key_bounds[2 * part.sequence + 1] = static_cast<int32_t>(first_slot + length);
  if (!spec_.all_logits) batch.output_rows[part.sequence] = static_cast<int32_t>(row + count - 1);
}

void CachedForward::prefill(std::span<const SequencePart> parts) {
  reset(prefill_, spec_.sequences);
  int64_t row = 0;
  for (const SequencePart& part : parts) {
    append(prefill_, row, part);
    row += static_cast<int64_t>(part.ids.size());
  }
  if (spec_.all_logits)
    for (int64_t i = 0; i < row; ++i) prefill_.output_rows[i] = static_cast<int32_t>(i);
  run(prefill_);
}

void CachedForward::decode(std::span<const int32_t> ids) {
  SNUG_CHECK_EQ(static_cast<int64_t>(ids.size()), spec_.sequences);
  reset(decode_, spec_.sequences);
  for (int64_t sequence = 0; sequence < spec_.sequences; ++sequence) {
    const auto id = ids.subspan(static_cast<size_t>(sequence), 1);
    if (id.front() != kIdle) append(decode_, sequence, {sequence, id});
  }
  run(decode_);
}

void CachedForward::run(const Batch& batch) {
  inference_.executor().run(batch.program);
  last_ = &batch;
}

std::span<const float> CachedForward::logits(int64_t row) const {
  SNUG_CHECK(last_ != nullptr && row < last_->outputs && !has_candidates(), "no row {} of logits",
             row);
  inference_.executor().await_results();
  const auto count = static_cast<size_t>(spec_.model.vocab_size);
  return {last_->logits + static_cast<size_t>(row) * count, count};
}

Likeliest CachedForward::likeliest(int64_t row) const {
  SNUG_CHECK(last_ != nullptr && row < last_->outputs && has_candidates(),
             "no likeliest tokens of row {}", row);
  inference_.executor().await_results();
  const auto count = static_cast<size_t>(spec_.candidates);
  const auto first = static_cast<size_t>(row) * count;
  return {{last_->likeliest_logits + first, count}, {last_->likeliest_ids + first, count}};
}

}  // namespace snug::generate
