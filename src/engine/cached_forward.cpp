#include "engine/cached_forward.h"

#include <algorithm>

#include "base/error.h"
#include "program/ir/tensor_names.h"

namespace snug::engine {

using base::TokenStream;
using program::ProgramName;

namespace {

base::PerStream<int64_t> tokens_of(const plan::InferenceShape& shape, int64_t decoder,
                                   int64_t encoder) {
  if (!shape.capacity.has_encoder()) return decoder;
  return {decoder, encoder};
}

}  // namespace

CachedForward::CachedForward(runtime::Executor& executor, const plan::InferenceShape& shape)
    : executor_(executor),
      shape_(shape),
      prefill_(batch_of(ProgramName::prefill,
                        tokens_of(shape_, shape_.prefill_tokens, shape_.encoder_tokens))),
      rows_(static_cast<size_t>(shape_.sequences)),
      lengths_(shape_.capacity.map(
          [&](int64_t) { return std::vector<int64_t>(static_cast<size_t>(shape_.sequences)); })) {
  if (shape_.all_logits) return;
  for (const int32_t size : shape_.decode_sizes)
    decodes_.push_back(batch_of({ProgramName::decode, size}, tokens_of(shape_, size, 0)));
  decodes_.push_back(batch_of(ProgramName::decode, tokens_of(shape_, shape_.sequences, 0)));
}

StreamBatch CachedForward::stream_of(const program::ProgramKey& program, TokenStream stream,
                                     int64_t tokens) const {
  const auto name_of = [&](std::string_view name) {
    return program::host_name(own_name(program, program::stream_name(stream, name)));
  };
  const auto host = [&](std::string_view name) {
    return executor_.tensor(program, name_of(name)).as<int32_t>();
  };
  StreamBatch batch{.tokens = tokens};
  batch.key_bounds = host(program::kKeyBoundsName);
  if (tokens == 0) return batch;
  batch.ids = host(program::kTokensName);
  if (executor_.has(program, name_of(program::kPositionsName)))
    batch.positions = host(program::kPositionsName);
  batch.slots = host(program::kSlotsName);
  batch.query_bounds = host(program::kQueryBoundsName);
  return batch;
}

CachedForward::Batch CachedForward::batch_of(const program::ProgramKey& program,
                                             const base::PerStream<int64_t>& tokens) const {
  const auto host_side = [&](std::string_view name) {
    return executor_.tensor(program, program::host_name(own_name(program, name)));
  };
  Batch batch;
  batch.program = program;
  batch.segments = program.sequences > 0 ? program.sequences : shape_.sequences;
  batch.streams = tokens.each([&](TokenStream stream, int64_t of_stream) {
    return this->stream_of(program, stream, of_stream);
  });
  batch.output_rows = host_side(program::kOutputRowsName).as<int32_t>();
  const program::Shape& logits =
      executor_.tensor(program, own_name(program, program::kLogitsName)).shape;
  batch.outputs = logits[0];
  batch.vocabulary = logits[1];
  if (has_candidates()) {
    batch.likeliest_logits = host_side(program::kLikeliestLogitsName).as<const float>();
    batch.likeliest_ids = host_side(program::kLikeliestIdsName).as<const int32_t>();
  } else {
    batch.logits = host_side(program::kLogitsName).as<const float>();
  }
  return batch;
}

void CachedForward::release(int64_t sequence) {
  for (const TokenStream stream : lengths_.streams())
    lengths_[stream][static_cast<size_t>(sequence)] = 0;
}

void CachedForward::release_all() {
  for (int64_t sequence = 0; sequence < shape_.sequences; ++sequence) release(sequence);
}

// Makes every row padding: a token of no sequence, which is neither cached nor attended to.
void CachedForward::reset(const Batch& batch) {
  executor_.await_inputs(batch.program);
  for (const StreamBatch& stream : batch.streams) {
    std::fill_n(stream.key_bounds, 2 * batch.segments, 0);
    if (stream.tokens == 0) continue;
    std::fill_n(stream.ids, stream.tokens, 0);
    if (stream.positions != nullptr) std::fill_n(stream.positions, stream.tokens, 0);
    std::fill_n(stream.slots, stream.tokens, -1);
    std::fill_n(stream.query_bounds, 2 * batch.segments, 0);
  }
  std::fill_n(batch.output_rows, batch.outputs, 0);
}

// Writes the tokens into the batch's rows of a stream, starting at `row`.
void CachedForward::append(const Batch& batch, TokenStream stream, int64_t row, const Place& place,
                           std::span<const int32_t> ids) {
  const StreamBatch& to = batch.streams[stream];
  const auto count = static_cast<int64_t>(ids.size());
  int64_t& length = lengths_[stream][static_cast<size_t>(place.sequence)];
  const int64_t first_slot = place.sequence * shape_.capacity[stream];
  for (int64_t i = 0; i < count; ++i) {
    to.ids[row + i] = ids[static_cast<size_t>(i)];
    if (to.positions != nullptr) to.positions[row + i] = static_cast<int32_t>(length + i);
    to.slots[row + i] = static_cast<int32_t>(first_slot + length + i);
  }
  length += count;
  to.query_bounds[2 * place.segment] = static_cast<int32_t>(row);
  to.query_bounds[2 * place.segment + 1] = static_cast<int32_t>(row + count);
}

// Lets attention see all keys that the caches hold of the sequence.
void CachedForward::show_keys(const Batch& batch, TokenStream stream, const Place& place) const {
  const int64_t first = place.sequence * shape_.capacity[stream];
  int32_t* bounds = batch.streams[stream].key_bounds + 2 * place.segment;
  bounds[0] = static_cast<int32_t>(first);
  bounds[1] = static_cast<int32_t>(first + lengths_[stream][static_cast<size_t>(place.sequence)]);
}

void CachedForward::check_room(TokenStream stream, int64_t sequence, int64_t tokens) const {
  const int64_t length = lengths_[stream][static_cast<size_t>(sequence)];
  if (length + tokens <= shape_.capacity[stream]) return;
  base::throw_user_error(
      "sequence {} would grow from {} to {} tokens of the {}, and its place in the cache holds {}",
      sequence, length, length + tokens, base::word_of(stream), shape_.capacity[stream]);
}

// The caches are lost when the job begins another stage, so no sequence may be in use then.
void CachedForward::check_caches() const {
  if (stage_ == executor_.stages_begun()) return;
  for (const std::vector<int64_t>& lengths : lengths_)
    SNUG_CHECK(std::ranges::all_of(lengths, [](int64_t length) { return length == 0; }),
               "sequences go on after another stage of the job took their memory");
}

void CachedForward::check_parts(std::span<const SequencePart> parts) const {
  int64_t tokens = 0;
  int64_t last = -1;
  int64_t encoder_tokens = 0;
  for (const SequencePart& part : parts) {
    SNUG_CHECK(part.sequence > last && part.sequence < shape_.sequences && !part.ids.empty(),
               "{} tokens for sequence {} after one for sequence {}", part.ids.size(),
               part.sequence, last);
    last = part.sequence;
    check_room(TokenStream::decoder, part.sequence, std::ssize(part.ids));
    tokens += std::ssize(part.ids);
    if (part.encoder_ids.empty()) continue;
    SNUG_CHECK(length(part.sequence) == 0, "sequence {} has begun", part.sequence);
    check_room(TokenStream::encoder, part.sequence, std::ssize(part.encoder_ids));
    encoder_tokens += std::ssize(part.encoder_ids);
  }
  if (tokens > shape_.prefill_tokens || encoder_tokens > shape_.encoder_tokens)
    base::throw_user_error(
        "{} tokens are read at once, and {} for an encoder, of at most {} and {}", tokens,
        encoder_tokens, shape_.prefill_tokens, shape_.encoder_tokens);
}

void CachedForward::prefill(std::span<const SequencePart> parts) {
  check_caches();
  check_parts(parts);
  reset(prefill_);
  int64_t row = 0;
  int64_t encoder_row = 0;
  for (const SequencePart& part : parts) {
    const Place place{part.sequence, part.sequence};
    if (!part.encoder_ids.empty()) {
      append(prefill_, TokenStream::encoder, encoder_row, place, part.encoder_ids);
      encoder_row += std::ssize(part.encoder_ids);
    }
    append(prefill_, TokenStream::decoder, row, place, part.ids);
    row += std::ssize(part.ids);
    finish_part(prefill_, place, row);
  }
  if (shape_.all_logits)
    for (int64_t i = 0; i < row; ++i) prefill_.output_rows[i] = static_cast<int32_t>(i);
  run(prefill_);
}

// In the decode program for all sequences, each sequence's segment has the sequence's number.
void CachedForward::decode(std::span<const int32_t> ids) {
  SNUG_CHECK_EQ(std::ssize(ids), shape_.sequences);
  check_caches();
  int64_t active = 0;
  for (int64_t sequence = 0; sequence < shape_.sequences; ++sequence) {
    if (ids[static_cast<size_t>(sequence)] == kIdle) continue;
    check_room(TokenStream::decoder, sequence, 1);
    ++active;
  }
  const Batch& batch = smallest_for(active);
  reset(batch);
  int64_t next = 0;
  for (int64_t sequence = 0; sequence < shape_.sequences; ++sequence) {
    const auto id = ids.subspan(static_cast<size_t>(sequence), 1);
    if (id.front() == kIdle) continue;
    const Place place{sequence, batch.segments == shape_.sequences ? sequence : next++};
    append(batch, TokenStream::decoder, place.segment, place, id);
    finish_part(batch, place, place.segment + 1);
  }
  run(batch);
}

const CachedForward::Batch& CachedForward::smallest_for(int64_t sequences) const {
  SNUG_CHECK(!decodes_.empty(), "programs that score decode nothing");
  return *std::ranges::find_if(decodes_,
                               [&](const Batch& batch) { return batch.segments >= sequences; });
}

// Completes the part of a sequence whose appended rows end before `end`: the last of them gives the
// sequence's logits.
void CachedForward::finish_part(const Batch& batch, const Place& place, int64_t end) {
  for (const TokenStream stream : lengths_.streams()) show_keys(batch, stream, place);
  if (shape_.all_logits) return;
  batch.output_rows[place.segment] = static_cast<int32_t>(end - 1);
  rows_[static_cast<size_t>(place.sequence)] = place.segment;
}

void CachedForward::run(const Batch& batch) {
  executor_.run(batch.program);
  last_ = &batch;
  stage_ = executor_.stages_begun();
}

size_t CachedForward::row_of(int64_t sequence) const {
  SNUG_CHECK(last_ != nullptr, "no logits before the first run");
  const int64_t row = shape_.all_logits ? sequence : rows_[static_cast<size_t>(sequence)];
  SNUG_CHECK(row < last_->outputs, "no row {} of logits", row);
  return static_cast<size_t>(row);
}

std::span<const float> CachedForward::logits(int64_t sequence) const {
  SNUG_CHECK(!has_candidates(), "the likeliest tokens alone go to the host");
  const size_t row = row_of(sequence);
  executor_.await_results();
  const auto count = static_cast<size_t>(last_->vocabulary);
  return {last_->logits + row * count, count};
}

Likeliest CachedForward::likeliest(int64_t sequence) const {
  SNUG_CHECK(has_candidates(), "no likeliest tokens are looked for");
  executor_.await_results();
  const auto count = static_cast<size_t>(shape_.candidates);
  const size_t first = row_of(sequence) * count;
  return {{last_->likeliest_logits + first, count}, {last_->likeliest_ids + first, count}};
}

}  // namespace snug::engine
