#include "generate/cached_forward.h"

#include <algorithm>

#include "base/error.h"
#include "program/ir/tensor_names.h"

namespace snug::generate {

using base::TokenStream;
using program::ProgramName;

namespace {

base::PerStream<int64_t> tokens_of(const plan::InferenceSpec& spec, int64_t decoder,
                                   int64_t encoder) {
  if (!spec.capacity.has_encoder()) return decoder;
  return {decoder, encoder};
}

}  // namespace

CachedForward::CachedForward(Inference& inference)
    : inference_(inference),
      spec_(inference.spec()),
      prefill_(batch_of(ProgramName::prefill,
                        tokens_of(spec_, spec_.prefill_tokens, spec_.encoder_tokens))),
      lengths_(spec_.capacity.map(
          [&](int64_t) { return std::vector<int64_t>(static_cast<size_t>(spec_.sequences)); })) {
  if (!spec_.all_logits)
    decode_ = batch_of(ProgramName::decode, tokens_of(spec_, spec_.sequences, 0));
}

StreamBatch CachedForward::stream_of(ProgramName program, TokenStream stream,
                                     int64_t tokens) const {
  const auto& executor = inference_.executor();
  const auto name_of = [&](std::string_view name) {
    return program::host_name(own_name(program, program::stream_name(stream, name)));
  };
  const auto host = [&](std::string_view name) {
    return executor.tensor(program, name_of(name)).as<int32_t>();
  };
  StreamBatch batch{.tokens = tokens};
  batch.key_bounds = host(program::kKeyBoundsName);
  if (tokens == 0) return batch;
  batch.ids = host(program::kTokensName);
  if (executor.has(program, name_of(program::kPositionsName)))
    batch.positions = host(program::kPositionsName);
  batch.slots = host(program::kSlotsName);
  batch.query_bounds = host(program::kQueryBoundsName);
  return batch;
}

CachedForward::Batch CachedForward::batch_of(ProgramName program,
                                             const base::PerStream<int64_t>& tokens) const {
  const auto& executor = inference_.executor();
  const auto host_side = [&](std::string_view name) {
    return executor.tensor(program, program::host_name(own_name(program, name)));
  };
  Batch batch;
  batch.program = program;
  batch.streams = tokens.each([&](TokenStream stream, int64_t of_stream) {
    return this->stream_of(program, stream, of_stream);
  });
  batch.output_rows = host_side(program::kOutputRowsName).as<int32_t>();
  batch.outputs = executor.tensor(program, own_name(program, program::kLogitsName)).shape[0];
  if (has_candidates()) {
    batch.likeliest_logits = host_side(program::kLikeliestLogitsName).as<const float>();
    batch.likeliest_ids = host_side(program::kLikeliestIdsName).as<const int32_t>();
  } else {
    batch.logits = host_side(program::kLogitsName).as<const float>();
  }
  return batch;
}

void CachedForward::clear() {
  for (const TokenStream stream : lengths_.streams()) std::ranges::fill(lengths_[stream], 0);
}

// Every row is padding: a token that is nobody's, kept out of the caches and of attention.
void CachedForward::reset(const Batch& batch) {
  inference_.executor().await_inputs(batch.program);
  for (const StreamBatch& stream : batch.streams) reset(stream);
  std::fill_n(batch.output_rows, batch.outputs, 0);
}

void CachedForward::reset(const StreamBatch& batch) const {
  std::fill_n(batch.key_bounds, 2 * spec_.sequences, 0);
  if (batch.tokens == 0) return;
  std::fill_n(batch.ids, batch.tokens, 0);
  if (batch.positions != nullptr) std::fill_n(batch.positions, batch.tokens, 0);
  std::fill_n(batch.slots, batch.tokens, -1);
  std::fill_n(batch.query_bounds, 2 * spec_.sequences, 0);
}

// Puts the tokens into the rows of a stream of the batch from `row` on.
void CachedForward::append(const Batch& batch, TokenStream stream, int64_t row, int64_t sequence,
                           std::span<const int32_t> ids) {
  const StreamBatch& to = batch.streams[stream];
  const auto count = static_cast<int64_t>(ids.size());
  int64_t& length = lengths_[stream][static_cast<size_t>(sequence)];
  const int64_t capacity = spec_.capacity[stream];
  SNUG_CHECK(row + count <= to.tokens, "{} tokens in a batch of {}", row + count, to.tokens);
  SNUG_CHECK(length + count <= capacity, "sequence {} grows to {} tokens of {}", sequence,
             length + count, capacity);
  const int64_t first_slot = sequence * capacity;
  for (int64_t i = 0; i < count; ++i) {
    to.ids[row + i] = ids[static_cast<size_t>(i)];
    if (to.positions != nullptr) to.positions[row + i] = static_cast<int32_t>(length + i);
    to.slots[row + i] = static_cast<int32_t>(first_slot + length + i);
  }
  length += count;
  to.query_bounds[2 * sequence] = static_cast<int32_t>(row);
  to.query_bounds[2 * sequence + 1] = static_cast<int32_t>(row + count);
}

// All that the caches have of a sequence.
void CachedForward::show_keys(const Batch& batch, TokenStream stream, int64_t sequence) const {
  const int64_t first = sequence * spec_.capacity[stream];
  int32_t* bounds = batch.streams[stream].key_bounds + 2 * sequence;
  bounds[0] = static_cast<int32_t>(first);
  bounds[1] = static_cast<int32_t>(first + lengths_[stream][static_cast<size_t>(sequence)]);
}

void CachedForward::prefill(std::span<const SequencePart> parts) {
  reset(prefill_);
  int64_t row = 0;
  int64_t encoder_row = 0;
  for (const SequencePart& part : parts) {
    if (!part.encoder_ids.empty()) {
      SNUG_CHECK(length(part.sequence) == 0, "sequence {} has begun", part.sequence);
      append(prefill_, TokenStream::encoder, encoder_row, part.sequence, part.encoder_ids);
      encoder_row += static_cast<int64_t>(part.encoder_ids.size());
    }
    append(prefill_, TokenStream::decoder, row, part.sequence, part.ids);
    row += static_cast<int64_t>(part.ids.size());
    finish_part(prefill_, part.sequence, row);
  }
  if (spec_.all_logits)
    for (int64_t i = 0; i < row; ++i) prefill_.output_rows[i] = static_cast<int32_t>(i);
  run(prefill_);
}

void CachedForward::decode(std::span<const int32_t> ids) {
  SNUG_CHECK_EQ(static_cast<int64_t>(ids.size()), spec_.sequences);
  reset(decode_);
  for (int64_t sequence = 0; sequence < spec_.sequences; ++sequence) {
    const auto id = ids.subspan(static_cast<size_t>(sequence), 1);
    if (id.front() == kIdle) continue;
    append(decode_, TokenStream::decoder, sequence, sequence, id);
    finish_part(decode_, sequence, sequence + 1);
  }
  run(decode_);
}

// What was appended ends before `end`: its last row gives the sequence's logits.
void CachedForward::finish_part(const Batch& batch, int64_t sequence, int64_t end) const {
  for (const TokenStream stream : lengths_.streams()) show_keys(batch, stream, sequence);
  if (!spec_.all_logits) batch.output_rows[sequence] = static_cast<int32_t>(end - 1);
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
