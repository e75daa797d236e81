#include "engine/request_shape.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "plan/job/request_sizes.h"
#include "text/unicode/utf8.h"

namespace snug::engine {
namespace {

using base::TokenStream;

// The most prompt tokens that requests have which enter together, when each group of `sequences`
// enters at once.
int64_t most_prompt_tokens(std::span<const Request> requests, int64_t sequences) {
  int64_t most = 1;
  int64_t of_group = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (i % static_cast<size_t>(sequences) == 0) of_group = 0;
    of_group += std::ssize(requests[i].prompt);
    most = std::max(most, of_group);
  }
  return most;
}

void check_prompt_ids(std::span<const int32_t> ids, const models::ModelConfig& model) {
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= model.vocab_size)
      base::throw_user_error(
          "token {} of the prompt is {}, but the model's vocabulary has {} ids, 0 to {}; use the "
          "tokenizer that belongs to the model",
          i + 1, ids[i], model.vocab_size, model.vocab_size - 1);
}

void check_length(const Request& request, const models::ModelConfig& model,
                  const plan::InferenceShape& shape) {
  const auto prompt = std::ssize(request.prompt);
  const base::PerStream<int64_t>& capacity = shape.capacity;
  const bool has_encoder = capacity.has_encoder();
  // The last new token is returned but never fed back into the model; an encoder-decoder reads a
  // token of its own first.
  const int64_t room = has_encoder ? capacity.decoder() - (model.repeats_prompt ? prompt : 0)
                                   : capacity.decoder() - prompt + 1;
  const bool is_read =
      !has_encoder || prompt <= std::min(capacity[TokenStream::encoder], shape.encoder_tokens);
  if (!is_read || request.max_new_tokens > room)
    base::throw_user_error(
        "a prompt of {} tokens and {} new ones do not fit in a cache of {} for each sequence; "
        "shorten the prompt or lower max_new_tokens",
        prompt, request.max_new_tokens, capacity.sum());
}

void check_candidates(const Request& request, const plan::InferenceShape& shape) {
  const int64_t asked = candidates_of(request);
  if (shape.candidates == 0 || (asked > 0 && asked <= shape.candidates)) return;
  base::throw_user_error(
      "the sampling asks for {} tokens, and the programs look for the {} likeliest: plan with the "
      "temperature, top_k, penalties, form and log-probabilities that are asked for",
      asked > 0 ? fmt::format("the {} likeliest", asked) : "all", shape.candidates);
}

}  // namespace

Ids read_by_decoder(const Ids& prompt, const models::ModelConfig& model) {
  if (!model.has_encoder()) return prompt;
  Ids read{static_cast<int32_t>(model.decoder_start_id)};
  if (model.repeats_prompt) read.insert(read.end(), prompt.begin(), prompt.end());
  return read;
}

int64_t candidates_of(const Request& request) {
  const bool needs_row = request.log_probabilities || request.form != nullptr;
  return needs_row ? 0 : candidates_of(request.sampling);
}

bool can_be_guessed(const Request& request) { return candidates_of(request) == 1; }

plan::InferenceShape shape_for(std::span<const Request> requests, int64_t batch,
                               const models::ModelConfig& model) {
  plan::RequestSizes sizes;
  sizes.sequences = std::clamp<int64_t>(std::ssize(requests), 1, batch);
  sizes.entering_tokens = most_prompt_tokens(requests, sizes.sequences);
  int64_t most_candidates = 0;
  bool needs_all = requests.empty();
  for (const Request& request : requests) {
    const auto prompt = std::ssize(request.prompt);
    const int64_t candidates = candidates_of(request);
    needs_all = needs_all || candidates == 0;
    most_candidates = std::max(most_candidates, candidates);
    sizes.prompt_tokens = std::max(sizes.prompt_tokens, prompt);
    sizes.answer_tokens =
        std::max(sizes.answer_tokens, request.max_new_tokens + (model.repeats_prompt ? prompt : 0));
    // The last new token is returned but never fed back into the model.
    sizes.request_tokens = std::max(sizes.request_tokens, prompt + request.max_new_tokens - 1);
  }
  plan::InferenceShape shape = plan::shape_of(sizes, model);
  if (!needs_all) shape.candidates = most_candidates;
  return shape;
}

void check_request(const Request& request, const models::ModelConfig& model,
                   const plan::InferenceShape& shape) {
  if (request.prompt.empty())
    base::throw_user_error("the prompt is empty, and a model needs a token to continue from");
  check_prompt_ids(request.prompt, model);
  if (request.max_new_tokens < 1)
    base::throw_user_error("max_new_tokens is {}, and an answer has one token at least",
                           request.max_new_tokens);
  if (request.deadline && std::isnan(*request.deadline))
    base::throw_user_error("the deadline is no number of seconds");
  check_sampling(request.sampling);
  if (request.log_probabilities.value_or(0) < 0)
    base::throw_user_error("log-probabilities of {} tokens are asked for; 0 gives the new one's",
                           *request.log_probabilities);
  for (const std::string& text : request.end.texts)
    if (text.empty() || text::find_invalid_utf8(text) != std::string::npos)
      base::throw_user_error("a stop text is {}; give the text that ends an answer",
                             text.empty() ? "empty" : "not UTF-8");
  check_length(request, model, shape);
  check_candidates(request, shape);
}

void check_adapter(const std::string& adapter, std::span<const std::string> adapters) {
  if (adapter.empty() || std::ranges::count(adapters, adapter) > 0) return;
  if (adapters.empty())
    base::throw_user_error(
        "the adapter '{}' is asked for, and none is loaded that requests choose from; give "
        "adapters={}=FOLDER",
        adapter, adapter);
  base::throw_user_error("there is no adapter '{}'; there {} {}", adapter,
                         adapters.size() == 1 ? "is" : "are", fmt::join(adapters, ", "));
}

}  // namespace snug::engine
