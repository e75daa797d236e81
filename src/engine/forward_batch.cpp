#include "engine/forward_batch.h"

#include <algorithm>

#include "base/error.h"
#include "methods/lora_slots.h"
#include "models/forward/forward.h"
#include "program/ir/tensor_names.h"

namespace snug::engine {

using base::TokenStream;
using program::ProgramName;

namespace {

class BatchOpener {
 public:
  BatchOpener(runtime::Executor& executor, const plan::InferenceShape& shape)
      : executor_(executor), shape_(shape) {}

  ForwardBatch prefill(const program::ProgramKey& key, int64_t tokens, int64_t encoder_tokens) {
    return open(key, shape_.sequences, in_streams(tokens, encoder_tokens));
  }
  // Each row is a segment of its own.
  ForwardBatch decode(const program::ProgramKey& key, int64_t rows) {
    return open(key, rows, in_streams(rows, 0));
  }

 private:
  base::PerStream<int64_t> in_streams(int64_t decoder, int64_t encoder) const {
    if (!shape_.capacity.has_encoder()) return decoder;
    return {decoder, encoder};
  }

  const backends::Buffer& host_side(const program::ProgramKey& key, std::string_view name) const {
    return executor_.tensor(key, program::host_name(own_name(key, name)));
  }

  StreamBatch stream_of(const program::ProgramKey& key, TokenStream stream, int64_t tokens) const {
    StreamBatch batch{.tokens = tokens};
    for (const models::KeyPool& pool : executor_.job().key_pools)
      if (pool.group.stream == stream)
        batch.groups.push_back(group_of(key, pool.group, tokens > 0));
    if (tokens == 0) return batch;
    const auto host = [&](std::string_view name) {
      return host_side(key, program::stream_name(stream, name)).as<int32_t>();
    };
    batch.ids = host(program::kTokensName);
    const std::string positions = program::stream_name(stream, program::kPositionsName);
    if (executor_.has(key, program::host_name(own_name(key, positions))))
      batch.positions = host(program::kPositionsName);
    batch.query_bounds = host(program::kQueryBoundsName);
    return batch;
  }

  GroupBatch group_of(const program::ProgramKey& key, const models::KeyGroup& group,
                      bool is_appended_to) const {
    const auto host = [&](std::string_view name) -> const backends::Buffer& {
      return host_side(key, group_name(group, name));
    };
    GroupBatch batch;
    if (is_appended_to) batch.slots = host(program::kSlotsName).as<int32_t>();
    batch.key_bounds = host(program::kKeyBoundsName).as<int32_t>();
    const backends::Buffer& pages = host(program::kPagesName);
    batch.pages = pages.as<int32_t>();
    batch.pages_of_segment = pages.shape[1];
    return batch;
  }

  void open_slots(const program::ProgramKey& key, ForwardBatch& batch) const {
    const std::string name = own_name(key, program::kAdapterRowsName);
    if (!executor_.has(key, program::host_name(name))) return;
    const backends::Buffer& rows = host_side(key, program::kAdapterRowsName);
    batch.adapter_rows = rows.as<int32_t>();
    batch.slots = rows.elements() / batch.streams.decoder().tokens;
  }

  ForwardBatch open(const program::ProgramKey& key, int64_t segments,
                    const base::PerStream<int64_t>& tokens) const {
    ForwardBatch batch;
    batch.program = key;
    batch.segments = segments;
    batch.streams = tokens.each([&](TokenStream stream, int64_t of_stream) {
      return this->stream_of(key, stream, of_stream);
    });
    open_slots(key, batch);
    const std::string slots = models::state_slots_name();
    if (executor_.has(key, program::host_name(own_name(key, slots))))
      batch.state_slots = host_side(key, slots).as<int32_t>();
    batch.output_rows = host_side(key, program::kOutputRowsName).as<int32_t>();
    const program::Shape& logits = executor_.tensor(key, own_name(key, program::kLogitsName)).shape;
    batch.outputs = logits[0];
    batch.vocabulary = logits[1];
    if (shape_.candidates > 0) {
      batch.likeliest_logits = host_side(key, program::kLikeliestLogitsName).as<const float>();
      batch.likeliest_ids = host_side(key, program::kLikeliestIdsName).as<const int32_t>();
    } else {
      batch.logits = host_side(key, program::kLogitsName).as<const float>();
    }
    return batch;
  }

  runtime::Executor& executor_;
  const plan::InferenceShape& shape_;
};

}  // namespace

void ForwardBatch::reset() const {
  for (const StreamBatch& stream : streams) {
    for (const GroupBatch& group : stream.groups) {
      if (group.slots != nullptr) std::fill_n(group.slots, stream.tokens, -1);
      std::fill_n(group.key_bounds, 2 * segments, 0);
      std::fill_n(group.pages, segments * group.pages_of_segment, -1);
    }
    if (stream.tokens == 0) continue;
    std::fill_n(stream.ids, stream.tokens, 0);
    if (stream.positions != nullptr) std::fill_n(stream.positions, stream.tokens, 0);
    std::fill_n(stream.query_bounds, 2 * segments, 0);
  }
  if (state_slots != nullptr) std::fill_n(state_slots, 2 * segments, 0);
  std::fill_n(output_rows, outputs, 0);
  set_slot(0, streams.decoder().tokens, methods::kNoAdapter);
}

void ForwardBatch::set_slot(int64_t first_row, int64_t rows, int64_t slot) const {
  SNUG_CHECK(slot < slots, "slot {} of {}", slot, slots);
  for (int64_t row = first_row; row < first_row + rows && slots > 0; ++row)
    methods::chosen_rows(row, slot, {adapter_rows + row * slots, static_cast<size_t>(slots)});
}

ForwardBatches open_batches(runtime::Executor& executor, const plan::InferenceShape& shape) {
  BatchOpener opener(executor, shape);
  ForwardBatches batches;
  for (const int32_t size : plan::small_prefills(shape))
    batches.prefills.push_back(opener.prefill({ProgramName::prefill, size}, size, 0));
  batches.prefills.push_back(
      opener.prefill(ProgramName::prefill, shape.prefill_tokens, shape.encoder_tokens));
  if (shape.all_logits) return batches;
  for (const int32_t size : plan::small_decodes(shape))
    batches.decodes.push_back(opener.decode({ProgramName::decode, size}, size));
  batches.decodes.push_back(opener.decode(ProgramName::decode, plan::decode_rows(shape)));
  return batches;
}

}  // namespace snug::engine
