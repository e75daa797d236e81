#include "engine/open_answer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "engine/request_shape.h"

namespace snug::engine {
namespace {

// log(softmax(logits / temperature)) of any token of a row, summed in double; temperature 0 counts
// as 1.
class RowProbabilities {
 public:
  RowProbabilities(std::span<const float> logits, double temperature)
      : logits_(logits), scale_(temperature > 0 ? 1 / temperature : 1) {
    for (const float logit : logits)
      if (logit > most_) most_ = logit;
    double sum = 0;
    for (const float logit : logits) sum += std::exp((logit - most_) * scale_);
    log_sum_ = std::log(sum);
  }
  double of(int32_t id) const {
    return (logits_[static_cast<size_t>(id)] - most_) * scale_ - log_sum_;
  }

 private:
  std::span<const float> logits_;
  double scale_ = 1;
  double most_ = -std::numeric_limits<double>::infinity();
  double log_sum_ = 0;
};

}  // namespace

OpenAnswer::OpenAnswer(RequestId id, Request request, const models::ModelConfig& model,
                       const text::Tokenizer* tokenizer)
    : id_(id),
      request_(std::move(request)),
      has_encoder_(model.has_encoder()),
      decoder_ids_(read_by_decoder(request_.prompt, model)),
      sampler_(request_.sampling) {
  // An encoder-decoder's answer is a text of its own and does not continue the prompt.
  if (tokenizer != nullptr)
    text_.emplace(*tokenizer,
                  has_encoder_ ? std::span<const int32_t>() : std::span(request_.prompt),
                  request_.end);
}

std::span<const int32_t> OpenAnswer::encoder_ids() const {
  return has_encoder_ ? std::span(request_.prompt) : std::span<const int32_t>();
}

AnswerEvent OpenAnswer::take(const CachedForward& forward, int64_t sequence) {
  AnswerEvent event{.request = id_};
  const int32_t id = choose(forward, sequence, event);
  event.id = id;
  ids_.push_back(id);
  const AnswerEnd& end = request_.end;
  if (text_) event.text = text_->push(id);
  if ((text_ && text_->has_ended()) || std::ranges::find(end.ids, id) != end.ids.end())
    event.finish = Finish::stop;
  else if (std::ssize(ids_) >= request_.max_new_tokens)
    event.finish = Finish::length;
  if (event.finish && text_) event.text += text_->finish();
  return event;
}

AnswerEvent OpenAnswer::end(Finish finish) {
  return {.request = id_, .text = text_ ? text_->finish() : "", .finish = finish};
}

int32_t OpenAnswer::choose(const CachedForward& forward, int64_t sequence, AnswerEvent& event) {
  const Draw draw{request_.sample, std::ssize(ids_)};
  if (forward.has_candidates()) {
    const auto count = static_cast<size_t>(candidates_of(request_.sampling));
    const Likeliest likeliest = forward.likeliest(sequence);
    return sampler_.pick({likeliest.logits.first(count), likeliest.ids.first(count)}, draw);
  }
  const std::span<const float> logits = forward.logits(sequence);
  const int32_t id = sampler_.pick(penalized(logits), draw);
  if (request_.log_probabilities) tell_probabilities(logits, id, event);
  return id;
}

std::span<const float> OpenAnswer::penalized(std::span<const float> logits) {
  const double penalty = request_.sampling.repetition_penalty;
  if (penalty == 1) return logits;
  Ids seen = decoder_ids_;
  seen.insert(seen.end(), ids_.begin(), ids_.end());
  penalize_repetition(logits, seen, penalty, penalized_);
  return penalized_;
}

void OpenAnswer::tell_probabilities(std::span<const float> logits, int32_t id,
                                    AnswerEvent& event) const {
  const RowProbabilities row(logits, request_.sampling.temperature);
  event.log_probability = row.of(id);
  if (*request_.log_probabilities == 0) return;
  BlockMaxima maxima;
  maxima.find(logits);
  std::vector<Candidate> likeliest;
  maxima.likeliest(static_cast<size_t>(*request_.log_probabilities), likeliest);
  for (const Candidate& one : likeliest) event.likeliest.push_back({one.id, row.of(one.id)});
}

}  // namespace snug::engine
