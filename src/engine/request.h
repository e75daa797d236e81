// What is asked of the engine, and what it answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/answer_text.h"
#include "engine/sampling.h"
#include "text/grammar/token_mask.h"

namespace snug::engine {

using Ids = std::vector<int32_t>;
using RequestId = int64_t;  // counts the requests of an engine from 0, in the order of arrival
using Seconds = double;     // since an engine began, by its clock

// Log-probabilities are of log_softmax(logits / temperature), before penalties and before anything
// is cut away; with temperature 0 of log_softmax(logits).
struct TokenLogProbability {
  int32_t id = 0;
  double log_probability = 0;
};

struct Request {
  Ids prompt;  // at least one; of a model with an encoder, the encoder's input
  int64_t max_new_tokens = 0;
  SamplingOptions sampling{};
  AnswerEnd end{};        // its texts need an engine with a tokenizer
  std::string adapter{};  // one of the engine's, by its name; empty: none
  // With each new token: how many of the likeliest have their log-probabilities; 0: the new token
  // alone; nothing: none.
  std::optional<int64_t> log_probabilities{};
  bool entropies = false;             // with each new token, where it has log-probabilities
  std::optional<Seconds> deadline{};  // what is not finished by then ends as it is
  // What the whole answer follows, with the engine's vocabulary; nothing: any answer. Requests may
  // share it.
  std::shared_ptr<text::TokenGrammar> form{};
  // Distinguishes several answers to one prompt: draws are of (seed, sample, token).
  int64_t sample = 0;
};

enum class Finish : uint8_t {
  stop,       // an id or a text that ends an answer, or its form is complete
  length,     // max_new_tokens
  cancelled,  // by cancel()
  deadline,
};

// One new token of an answer, as it is chosen. The last event of a request has a finish; it has no
// token where the request was cancelled or came to its deadline.
struct AnswerEvent {
  RequestId request = 0;
  std::optional<int32_t> id{};
  // What is certain of the text by now and was not told before: without stop texts, without halves
  // of characters. Empty without a tokenizer.
  std::string text{};
  std::optional<double> log_probability{};
  std::vector<TokenLogProbability> likeliest{};
  std::optional<double>
      entropy{};  // of the distribution whose log-probabilities these are, in nats
  std::optional<Finish> finish{};
};
using Listener = std::function<void(const AnswerEvent&)>;

// A whole answer, for callers that need no events.
struct Answer {
  Ids ids;           // a stop id at its end included
  std::string text;  // without what ended it; empty without a tokenizer
  Finish finish = Finish::length;
  std::vector<double> log_probabilities{};  // of `ids`, where they were asked for
  std::vector<double> entropies{};          // the same
  int64_t prompt_tokens = 0;
};

}  // namespace snug::engine
