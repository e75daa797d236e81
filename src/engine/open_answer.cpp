#include "engine/open_answer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/log_probabilities.h"
#include "engine/prompt_lookup.h"
#include "engine/request_shape.h"

namespace snug::engine {

OpenAnswer::OpenAnswer(RequestId id, Request request, const models::ModelConfig& model,
                       const text::Tokenizer* tokenizer)
    : id_(id),
      request_(std::move(request)),
      has_encoder_(model.has_encoder()),
      decoder_ids_(read_by_decoder(request_.prompt, model)),
      penalties_(request_.sampling),
      sampler_(request_.sampling) {
  if (request_.form != nullptr) mask_.emplace(request_.form, request_.end.ids);
  // An encoder-decoder's answer is a text of its own and does not continue the prompt.
  if (tokenizer != nullptr)
    text_.emplace(*tokenizer,
                  has_encoder_ ? std::span<const int32_t>() : std::span(request_.prompt),
                  request_.end);
}

std::span<const int32_t> OpenAnswer::encoder_ids() const {
  return has_encoder_ ? std::span(request_.prompt) : std::span<const int32_t>();
}

void OpenAnswer::read_again() {
  read_again_ = decoder_ids_;
  read_again_.insert(read_again_.end(), ids_.begin(), ids_.end());
}

// An encoder-decoder's answer may repeat what its encoder read.
Ids OpenAnswer::guess(int64_t most) const {
  if (!can_be_guessed(request_)) return {};
  // The run gives a token more than it verifies.
  const int64_t room = request_.max_new_tokens - std::ssize(ids_) - 1;
  Ids text = request_.prompt;
  text.insert(text.end(), ids_.begin(), ids_.end());
  return looked_up(text, std::min(most, room));
}

AnswerEvent OpenAnswer::take(const CachedForward& forward, int64_t sequence, int64_t number) {
  AnswerEvent event{.request = id_};
  const int32_t id = choose(forward, {sequence, number}, event);
  event.id = id;
  ids_.push_back(id);
  const AnswerEnd& end = request_.end;
  if (text_) event.text = text_->push(id);
  const bool is_whole = mask_ && !mask_->accept(id);
  if (is_whole || (text_ && text_->has_ended()) || std::ranges::find(end.ids, id) != end.ids.end())
    event.finish = Finish::stop;
  else if (std::ssize(ids_) >= request_.max_new_tokens)
    event.finish = Finish::length;
  if (event.finish && text_) event.text += text_->finish();
  return event;
}

AnswerEvent OpenAnswer::end(Finish finish) {
  return {.request = id_, .text = text_ ? text_->finish() : "", .finish = finish};
}

int32_t OpenAnswer::choose(const CachedForward& forward, const Row& row, AnswerEvent& event) {
  const Draw draw{request_.sample, std::ssize(ids_)};
  if (forward.has_candidates()) {
    const auto count = static_cast<size_t>(candidates_of(request_.sampling));
    const Likeliest likeliest = forward.likeliest(row.sequence, row.number);
    return sampler_.pick({likeliest.logits.first(count), likeliest.ids.first(count)}, draw);
  }
  const std::span<const float> logits = forward.logits(row.sequence, row.number);
  const std::span<const float> penalized = penalties_.applied(logits, {decoder_ids_, ids_});
  const int32_t id = sampler_.pick(mask_ ? mask_->applied(penalized) : penalized, draw);
  if (request_.log_probabilities) tell_probabilities(logits, id, event);
  return id;
}

void OpenAnswer::tell_probabilities(std::span<const float> logits, int32_t id,
                                    AnswerEvent& event) const {
  LogProbabilities row(logits, request_.sampling.temperature);
  event.log_probability = row.of(id);
  if (request_.entropies) event.entropy = row.entropy();
  const auto count = static_cast<size_t>(*request_.log_probabilities);
  for (const Candidate& one : row.likeliest(count)) event.likeliest.push_back({one.id, one.weight});
}

}  // namespace snug::engine
