// An answer as it grows: the one place where a token is chosen from a row of logits, and where an
// event is made of it. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/answer_mask.h"
#include "engine/answer_text.h"
#include "engine/cached_forward.h"
#include "engine/penalties.h"
#include "engine/request.h"
#include "engine/sampling.h"
#include "models/config/config.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::engine {

class OpenAnswer {
 public:
  // Without a tokenizer there is no text. Both must outlive the object.
  OpenAnswer(RequestId id, Request request, const models::ModelConfig& model,
             const text::Tokenizer* tokenizer);

  // What the decoder reads when the request enters, and the encoder, which may have none.
  std::span<const int32_t> decoder_ids() const {
    return read_again_.empty() ? decoder_ids_ : read_again_;
  }
  std::span<const int32_t> encoder_ids() const;
  int32_t last_id() const { return ids_.back(); }
  // The most tokens that have keys and values: the last new one has none.
  int64_t most_tokens() const { return tokens_with(request_.max_new_tokens); }
  // The tokens that have keys and values when so many are new.
  int64_t tokens_with(int64_t new_tokens) const {
    return std::ssize(decoder_ids_) + new_tokens - 1;
  }
  const std::string& adapter() const { return request_.adapter; }

  // The request enters again, and the decoder reads the answer so far too.
  void read_again();

  // Guesses of the tokens after the next one, at most `most`, for a run that verifies them. None
  // for a request whose next token depends on more than the likeliest one of its row: on draws,
  // penalties, a form; and none where log-probabilities are asked for.
  Ids guess(int64_t most) const;

  // Chooses the next token from what the last run gave for its sequence, where the run appended
  // several tokens to it, from what it gave for the token `number`.
  AnswerEvent take(const CachedForward& forward, int64_t sequence, int64_t number = 0);
  // Ends the answer as it is.
  AnswerEvent end(Finish finish);

 private:
  // The logits of a token of a sequence in the last run.
  struct Row {
    int64_t sequence = 0;
    int64_t number = 0;
  };
  int32_t choose(const CachedForward& forward, const Row& row, AnswerEvent& event);
  void tell_probabilities(std::span<const float> logits, int32_t id, AnswerEvent& event) const;

  RequestId id_;
  Request request_;
  bool has_encoder_;
  Ids decoder_ids_;
  Ids ids_;  // the new ones
  Ids read_again_;
  std::optional<AnswerMask> mask_;
  Penalties penalties_;
  Sampler sampler_;
  std::optional<AnswerText> text_;
};

}  // namespace snug::engine
