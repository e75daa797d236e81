// The answers to a request in the form that clients read: whole, or as the chunks of a stream. One
// object serves one request and one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "serve/answer_queue.h"
#include "serve/completion_request.h"
#include "serve/served_model.h"
#include "text/answer/answer_reader.h"

namespace snug::serve {

class CompletionAnswer {
 public:
  // Both must outlive it. `id`: a word of its own for each request; `created`: seconds since 1970.
  CompletionAnswer(const CompletionRequest& request, const ServedModel& model, std::string id,
                   int64_t created);

  // Takes an event in. Throws ApiError where an answer ended before its end: by its deadline, or
  // because it was taken back.
  void take(const ChoiceEvent& event);
  // What a stream says first of each choice: who speaks. None in completions.
  std::vector<nlohmann::ordered_json> first_chunks() const;
  // What a stream says of an event, which take() has had: text, log-probabilities, the end.
  std::vector<nlohmann::ordered_json> chunks(const ChoiceEvent& event) const;
  nlohmann::ordered_json usage_chunk() const;

  bool has_ended() const { return ended_ == choices_.size(); }
  nlohmann::ordered_json whole() const;
  int64_t new_tokens() const { return new_tokens_; }

 private:
  struct Choice {
    std::optional<text::AnswerReader> reader{};  // of a chat
    std::vector<text::AnswerPiece> pieces{};     // of the last event
    size_t calls_before = 0;                     // those of the last event
    std::string text{};
    std::string thought{};
    nlohmann::ordered_json calls = nlohmann::ordered_json::array();
    std::string finish{};
    nlohmann::ordered_json tokens = nlohmann::ordered_json::array();  // their log-probabilities
    int64_t cached_tokens = 0;
    int64_t offset = 0;  // characters of the tokens so far
  };
  void divide(Choice& choice, const ChoiceEvent& event);
  nlohmann::ordered_json call_json(const text::ToolCall& call, int64_t choice, size_t number) const;
  std::vector<nlohmann::ordered_json> deltas(const Choice& choice) const;
  nlohmann::ordered_json message(const Choice& choice) const;
  nlohmann::ordered_json frame(bool is_chunk) const;
  nlohmann::ordered_json chunk(int64_t choice, nlohmann::ordered_json delta) const;
  nlohmann::ordered_json usage() const;
  nlohmann::ordered_json token_json(const ChoiceEvent& event) const;
  nlohmann::ordered_json log_probabilities(const nlohmann::ordered_json& tokens,
                                           int64_t offset) const;
  std::string token_text(int32_t id) const;
  bool shows_token(const engine::AnswerEvent& event) const;

  const CompletionRequest& request_;
  const ServedModel& model_;
  const std::string id_;
  const int64_t created_;
  std::vector<Choice> choices_;
  size_t ended_ = 0;
  int64_t new_tokens_ = 0;
  int64_t thought_tokens_ = 0;  // of them
};

}  // namespace snug::serve
