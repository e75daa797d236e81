#include "engine/cached_forward.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "methods/lora_slots.h"

namespace snug::engine {

using base::TokenStream;
using program::ProgramName;

namespace {

// The pages of each stream's groups.
std::vector<SequencePages> pages_of_streams(const plan::InferenceShape& shape,
                                            const std::vector<models::KeyPool>& pools) {
  std::vector<SequencePages> pages;
  for (const TokenStream stream : shape.capacity.streams()) {
    PagesShape of_stream{.page_tokens = shape.page_tokens,
                         .sequences = shape.sequences,
                         .sequence_tokens = shape.capacity[stream],
                         .chunk_tokens = stream == TokenStream::decoder ? shape.prefill_tokens
                                                                        : shape.encoder_tokens,
                         .answer_tokens = 1 + shape.guessed_tokens,
                         .groups = {}};
    for (const models::KeyPool& pool : pools)
      if (pool.group.stream == stream) of_stream.groups.push_back({pool.pages, pool.group.window});
    pages.emplace_back(std::move(of_stream));
  }
  return pages;
}

}  // namespace

CachedForward::CachedForward(runtime::Executor& executor, const plan::InferenceShape& shape,
                             AgreeOnTurn agree)
    : executor_(executor),
      shape_(shape),
      agree_(std::move(agree)),
      batches_(open_batches(executor, shape_)),
      rows_(static_cast<size_t>(shape_.sequences)),
      undecided_(static_cast<size_t>(shape_.sequences)),
      promised_(static_cast<size_t>(shape_.sequences)),
      slots_(static_cast<size_t>(shape_.sequences), methods::kNoAdapter),
      pages_(pages_of_streams(shape_, executor.job().key_pools)) {
  SNUG_CHECK(!agree_ || !shape_.capacity.has_encoder(), "ranks agree on programs of an encoder");
}

std::optional<int64_t> CachedForward::enter(int64_t sequence, const EnteringSequence& entering,
                                            std::optional<int64_t> encoder_tokens) {
  begin_stage();
  SNUG_CHECK(entering.promised_tokens <= shape_.capacity.decoder(), "{} tokens promised of {}",
             entering.promised_tokens, shape_.capacity.decoder());
  const std::optional<int64_t> shared =
      pages(TokenStream::decoder).enter(sequence, as_can_share(entering));
  if (!shared) return std::nullopt;
  promised_[static_cast<size_t>(sequence)] = entering.promised_tokens;
  slots_[static_cast<size_t>(sequence)] = entering.adapter.adapter;
  if (!shape_.capacity.has_encoder()) return shared;
  const EnteringSequence for_encoder{
      .prompt = {},
      .promised_tokens = encoder_tokens.value_or(shape_.capacity[TokenStream::encoder]),
      .shares = false};
  if (pages(TokenStream::encoder).enter(sequence, for_encoder)) return shared;
  pages(TokenStream::decoder).release(sequence);
  return std::nullopt;
}

bool CachedForward::promise(int64_t sequence, int64_t tokens) {
  int64_t& promised = promised_[static_cast<size_t>(sequence)];
  if (tokens <= promised) return true;
  if (!pages(TokenStream::decoder).promise(sequence, tokens)) return false;
  promised = tokens;
  return true;
}

bool CachedForward::can_ever_enter(const models::SequenceGrowth& growth,
                                   int64_t encoder_tokens) const {
  if (!pages(TokenStream::decoder).can_ever_enter(growth)) return false;
  return !shape_.capacity.has_encoder() ||
         pages(TokenStream::encoder).can_ever_enter({encoder_tokens, encoder_tokens});
}

std::vector<int64_t> CachedForward::pages_of_groups() const {
  std::vector<int64_t> pages;
  for (const models::KeyPool& pool : executor_.job().key_pools) pages.push_back(pool.pages);
  return pages;
}

int64_t CachedForward::used_pages() const {
  int64_t used = 0;
  for (const SequencePages& pages : pages_)
    for (size_t group = 0; group < pages.shape().groups.size(); ++group)
      used += pages.pool(static_cast<int64_t>(group)).used();
  return used;
}

void CachedForward::forget_beginnings() {
  for (SequencePages& pages : pages_) pages.drop_all();
}

void CachedForward::release(int64_t sequence) {
  undecided_[static_cast<size_t>(sequence)] = 0;
  for (SequencePages& pages : pages_)
    if (!pages.is_empty(sequence)) pages.release(sequence);
}

void CachedForward::release_all() {
  for (int64_t sequence = 0; sequence < shape_.sequences; ++sequence) release(sequence);
}

// Writes the tokens into the batch's rows of a stream, starting at `row`; returns these rows.
CachedForward::Rows CachedForward::append(const ForwardBatch& batch, TokenStream stream,
                                          int64_t row, int64_t sequence,
                                          std::span<const int32_t> ids) {
  const StreamBatch& to = batch.streams[stream];
  SequencePages& pages = this->pages(stream);
  const int64_t length = pages.length(sequence);
  SNUG_CHECK(pages.grow(sequence, ids), "sequence {} has too few pages for {} tokens", sequence,
             length + std::ssize(ids));
  std::ranges::copy(ids, to.ids + row);
  if (to.positions != nullptr)
    std::iota(to.positions + row, to.positions + row + ids.size(), static_cast<int32_t>(length));
  for (size_t group = 0; group < to.groups.size(); ++group)
    pages.fill_slots(sequence, static_cast<int64_t>(group),
                     {to.groups[group].slots + row, ids.size()});
  if (stream == TokenStream::decoder)
    batch.set_slot(row, std::ssize(ids), slots_[static_cast<size_t>(sequence)]);
  return {row, row + std::ssize(ids)};
}

// Lets the segment have these rows of a stream as its queries.
void CachedForward::set_queries(const StreamBatch& to, int64_t segment, const Rows& rows) {
  to.query_bounds[2 * segment] = static_cast<int32_t>(rows.begin);
  to.query_bounds[2 * segment + 1] = static_cast<int32_t>(rows.end);
}

// Lets attention see the keys that the caches hold of the sequence, up to those of its unseen
// tokens.
void CachedForward::show_keys(const ForwardBatch& batch, TokenStream stream,
                              const Place& place) const {
  const std::vector<GroupBatch>& groups = batch.streams[stream].groups;
  for (size_t group = 0; group < groups.size(); ++group) {
    const GroupBatch& to = groups[group];
    const auto number = static_cast<int64_t>(group);
    const Positions keys = pages(stream).key_bounds(place.sequence, number);
    to.key_bounds[2 * place.segment] = static_cast<int32_t>(keys.begin);
    const int64_t unseen = stream == TokenStream::decoder ? place.unseen : 0;
    to.key_bounds[2 * place.segment + 1] = static_cast<int32_t>(keys.end - unseen);
    pages(stream).fill_table(
        place.sequence, number,
        {to.pages + place.segment * to.pages_of_segment, static_cast<size_t>(to.pages_of_segment)});
  }
}

void CachedForward::check_room(TokenStream stream, int64_t sequence, int64_t tokens) const {
  const int64_t length = pages(stream).length(sequence);
  const bool is_promised =
      stream == TokenStream::decoder && !pages(TokenStream::decoder).is_empty(sequence);
  const int64_t room =
      is_promised ? promised_[static_cast<size_t>(sequence)] : shape_.capacity[stream];
  if (length + tokens <= room) return;
  base::throw_user_error(
      "sequence {} would grow from {} to {} tokens of the {}, and its place in the cache holds {}",
      sequence, length, length + tokens, base::word_of(stream), room);
}

// The caches are lost when the job begins another stage, or when somebody else has written to them,
// so no sequence may be in use then, and no beginning is known.
void CachedForward::begin_stage() {
  executor_.begin_stage_of(ProgramName::prefill);
  const bool is_another_user = executor_.take_caches(this);
  if (stage_ == executor_.stages_begun() && !is_another_user) return;
  for (int64_t sequence = 0; sequence < shape_.sequences; ++sequence)
    SNUG_CHECK(length(sequence) == 0,
               "sequences go on after another stage of the job, or another engine, took their "
               "memory");
  forget_beginnings();
  stage_ = executor_.stages_begun();
}

// Lets those in that are not there yet: all of them or none.
void CachedForward::enter_all(std::span<const SequencePart> parts) {
  std::vector<int64_t> entered;
  for (const SequencePart& part : parts) {
    if (!pages(TokenStream::decoder).is_empty(part.sequence)) continue;
    const EnteringSequence entering{.prompt = part.ids,
                                    .promised_tokens = shape_.capacity.decoder(),
                                    .adapter = part.adapter,
                                    .shares = false};
    if (enter(part.sequence, entering)) {
      entered.push_back(part.sequence);
      continue;
    }
    for (const int64_t sequence : entered) release(sequence);
    base::throw_user_error(
        "sequence {} has no pages left in the cache for the {} tokens that it may come to have",
        part.sequence, shape_.capacity.decoder());
  }
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
  begin_stage();
  check_parts(parts);
  enter_all(parts);
  int64_t tokens = 0;
  int64_t encoder_tokens = 0;
  for (const SequencePart& part : parts) {
    tokens += std::ssize(part.ids);
    encoder_tokens += std::ssize(part.encoder_ids);
  }
  const ForwardBatch& batch =
      prefill_for(tokens_of_turn({ProgramName::prefill, tokens}), encoder_tokens);
  begin(batch);
  int64_t row = 0;
  int64_t encoder_row = 0;
  for (const SequencePart& part : parts) {
    const Place place{part.sequence, part.sequence};
    if (!part.encoder_ids.empty()) {
      const Rows rows =
          append(batch, TokenStream::encoder, encoder_row, part.sequence, part.encoder_ids);
      set_queries(batch.streams[TokenStream::encoder], place.segment, rows);
      encoder_row = rows.end;
    }
    const Rows rows = append(batch, TokenStream::decoder, row, part.sequence, part.ids);
    finish_part(batch, place, rows);
    rows_[static_cast<size_t>(part.sequence)] = place.segment;
    row = rows.end;
  }
  if (shape_.all_logits) std::iota(batch.output_rows, batch.output_rows + row, 0);
  run(batch);
}

void CachedForward::decode(std::span<const int32_t> ids) {
  SNUG_CHECK_EQ(std::ssize(ids), shape_.sequences);
  std::vector<SequencePart> parts;
  for (int64_t sequence = 0; sequence < shape_.sequences; ++sequence) {
    const auto id = ids.subspan(static_cast<size_t>(sequence), 1);
    if (id.front() != kIdle) parts.push_back({sequence, id});
  }
  decode(parts);
}

// Each token is a segment of its own, which sees the keys up to its own. In the decode program for
// all sequences, the segment of a sequence with one token has the sequence's number.
void CachedForward::decode(std::span<const SequencePart> parts) {
  begin_stage();
  int64_t tokens = 0;
  for (const SequencePart& part : parts) {
    const int64_t count = std::ssize(part.ids);
    SNUG_CHECK(count > 0 && count <= 1 + shape_.guessed_tokens, "{} tokens for sequence {}", count,
               part.sequence);
    check_room(TokenStream::decoder, part.sequence, count);
    tokens += count;
  }
  enter_all(parts);
  const ForwardBatch& batch = decode_for(tokens_of_turn({ProgramName::decode, tokens}));
  const bool is_by_number = batch.segments == shape_.sequences && tokens == std::ssize(parts);
  begin(batch);
  int64_t next = 0;
  for (const SequencePart& part : parts) {
    const int64_t first = is_by_number ? part.sequence : next;
    next = first + std::ssize(part.ids);
    append(batch, TokenStream::decoder, first, part.sequence, part.ids);
    for (int64_t row = first; row < next; ++row)
      finish_part(batch, {part.sequence, row, next - 1 - row}, {row, row + 1});
    rows_[static_cast<size_t>(part.sequence)] = first;
    if (std::ssize(part.ids) > 1)
      undecided_[static_cast<size_t>(part.sequence)] = std::ssize(part.ids);
  }
  run(batch);
}

void CachedForward::keep(int64_t sequence, int64_t tokens) {
  const int64_t appended = std::exchange(undecided_[static_cast<size_t>(sequence)], 0);
  SNUG_CHECK(tokens > 0 && tokens <= std::max<int64_t>(appended, 1), "{} of {} tokens stay", tokens,
             appended);
  if (appended == 0) return;
  pages(TokenStream::decoder).shrink(sequence, appended - tokens);
  pages(TokenStream::decoder).written(sequence);
}

// The smallest program that holds so many tokens. Only the largest one runs the encoder.
const ForwardBatch& CachedForward::prefill_for(int64_t tokens, int64_t encoder_tokens) const {
  if (encoder_tokens > 0) return batches_.prefills.back();
  return *std::ranges::find_if(batches_.prefills, [&](const ForwardBatch& batch) {
    return batch.streams.decoder().tokens >= tokens;
  });
}

const ForwardBatch& CachedForward::decode_for(int64_t rows) const {
  SNUG_CHECK(!batches_.decodes.empty(), "programs that score decode nothing");
  return *std::ranges::find_if(batches_.decodes,
                               [&](const ForwardBatch& batch) { return batch.segments >= rows; });
}

// Completes a segment with these rows of the decoder, the last of which gives its logits.
void CachedForward::finish_part(const ForwardBatch& batch, const Place& place, const Rows& rows) {
  set_queries(batch.streams.decoder(), place.segment, rows);
  for (const TokenStream stream : shape_.capacity.streams()) show_keys(batch, stream, place);
  if (batch.state_slots != nullptr) {
    int32_t* slots = batch.state_slots + 2 * place.segment;
    slots[0] = static_cast<int32_t>(place.sequence);
    slots[1] = static_cast<int32_t>(length(place.sequence));
  }
  if (!shape_.all_logits) batch.output_rows[place.segment] = static_cast<int32_t>(rows.end - 1);
}

// Waits until it is the turn of this rank's program, and returns for how many tokens it runs, at
// least its own. What a batch holds must not be written before.
int64_t CachedForward::tokens_of_turn(const Turn& own) {
  if (!agree_) return own.tokens;
  for (;;) {
    const Turn turn = agree_(own).value();
    if (turn.program == own.program) return turn.tokens;
    run_empty(turn);
  }
}

void CachedForward::run_empty(const Turn& turn) {
  begin_stage();
  const bool is_prefill = turn.program == ProgramName::prefill;
  const ForwardBatch& batch = is_prefill ? prefill_for(turn.tokens, 0) : decode_for(turn.tokens);
  begin(batch);
  executor_.run(batch.program);
}

void CachedForward::await_others() {
  while (agree_) {
    const std::optional<Turn> turn = agree_(std::nullopt);
    if (!turn) return;
    run_empty(*turn);
  }
}

void CachedForward::begin(const ForwardBatch& batch) {
  executor_.await_inputs(batch.program);
  batch.reset();
}

// Pages are given back only here: until all parts of the batch have theirs, none may take a page
// that another one still reads.
void CachedForward::run(const ForwardBatch& batch) {
  executor_.run(batch.program);
  for (SequencePages& pages : pages_)
    for (int64_t sequence = 0; sequence < shape_.sequences; ++sequence)
      if (!pages.is_empty(sequence) && !is_undecided(sequence)) pages.written(sequence);
  last_ = &batch;
}

size_t CachedForward::row_of(int64_t sequence, int64_t number) const {
  SNUG_CHECK(last_ != nullptr, "no logits before the first run");
  const int64_t row = shape_.all_logits ? sequence : rows_[static_cast<size_t>(sequence)] + number;
  SNUG_CHECK(row < last_->outputs, "no row {} of logits", row);
  return static_cast<size_t>(row);
}

std::span<const float> CachedForward::logits(int64_t sequence, int64_t number) const {
  SNUG_CHECK(!has_candidates(), "the likeliest tokens alone go to the host");
  const size_t row = row_of(sequence, number);
  executor_.await_results();
  const auto count = static_cast<size_t>(last_->vocabulary);
  return {last_->logits + row * count, count};
}

Likeliest CachedForward::likeliest(int64_t sequence, int64_t number) const {
  SNUG_CHECK(has_candidates(), "no likeliest tokens are looked for");
  executor_.await_results();
  const auto count = static_cast<size_t>(shape_.candidates);
  const size_t first = row_of(sequence, number) * count;
  return {{last_->likeliest_logits + first, count}, {last_->likeliest_ids + first, count}};
}

}  // namespace snug::engine
