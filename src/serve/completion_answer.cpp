#include "serve/completion_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "serve/api_error.h"

namespace snug::serve {
namespace {

using nlohmann::ordered_json;

int64_t characters(const std::string& text) {
  return std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; });
}

// The name of a call, by which its result comes back: nine letters and digits, which some templates
// insist on.
std::string call_id(const std::string& answer, int64_t choice, size_t number) {
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyz";
  constexpr size_t kLength = 9;
  const std::string name = fmt::format("{} {} {}", answer, choice, number);
  uint64_t rest = base::hash_name(name.data(), name.size());
  std::string id(kLength, '0');
  for (char& letter : id) {
    letter = kLetters[rest % kLetters.size()];
    rest /= kLetters.size();
  }
  return id;
}

// Why an answer that has ended is no whole answer.
[[noreturn]] void refuse_end(engine::Finish finish) {
  if (finish == engine::Finish::deadline)
    throw ApiError(kTimeout,
                   "the answer took longer than request_timeout allows; ask for fewer tokens");
  throw ApiError(kUnavailable, "the answer was taken back");
}

}  // namespace

CompletionAnswer::CompletionAnswer(const CompletionRequest& request, const ServedModel& model,
                                   std::string id, int64_t created)
    : request_(request),
      model_(model),
      id_(std::move(id)),
      created_(created),
      choices_(request.prompts.size() * static_cast<size_t>(request.answers)) {
  if (request.is_chat)
    for (Choice& choice : choices_) choice.reader.emplace(request.marks);
}

// The pieces of an event's text. What the mark that ends a thought cost counts as thought.
void CompletionAnswer::divide(Choice& choice, const ChoiceEvent& event) {
  choice.pieces.clear();
  choice.calls_before = choice.calls.size();
  if (!choice.reader) {
    choice.text += event.event.text;
    return;
  }
  const bool was_in_thought = choice.reader->is_in_thought();
  choice.pieces = choice.reader->push(event.event.text);
  if (event.event.id && (was_in_thought || choice.reader->is_in_thought())) ++thought_tokens_;
  if (event.event.finish)
    std::ranges::move(choice.reader->finish(), std::back_inserter(choice.pieces));
  for (const text::AnswerPiece& piece : choice.pieces) {
    if (piece.kind == text::AnswerPiece::Kind::call)
      choice.calls.push_back(call_json(piece.call, event.choice, choice.calls.size()));
    else
      (piece.kind == text::AnswerPiece::Kind::thought ? choice.thought : choice.text) += piece.text;
  }
}

ordered_json CompletionAnswer::call_json(const text::ToolCall& call, int64_t choice,
                                         size_t number) const {
  return {{"id", call_id(id_, choice, number)},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

void CompletionAnswer::take(const ChoiceEvent& event) {
  Choice& choice = choices_.at(static_cast<size_t>(event.choice));
  divide(choice, event);
  choice.cached_tokens = event.cached_tokens;
  if (event.event.id) ++new_tokens_;
  if (shows_token(event.event) && !request_.is_streamed) choice.tokens.push_back(token_json(event));
  if (!event.event.finish) return;
  ++ended_;
  switch (*event.event.finish) {
    case engine::Finish::stop:
      choice.finish = choice.calls.empty() ? "stop" : "tool_calls";
      break;
    case engine::Finish::length:
      choice.finish = "length";
      break;
    case engine::Finish::cancelled:
    case engine::Finish::deadline:
      refuse_end(*event.event.finish);
  }
}

// An id that ends an answer is no part of its text.
bool CompletionAnswer::shows_token(const engine::AnswerEvent& event) const {
  if (!event.id || !event.log_probability) return false;
  return event.finish != engine::Finish::stop ||
         std::ranges::count(request_.common.end.ids, *event.id) == 0;
}

std::string CompletionAnswer::token_text(int32_t id) const {
  return model_.tokenizer().decode({&id, 1}, false);
}

// {"token", "logprob", "bytes", "top_logprobs"}
ordered_json CompletionAnswer::token_json(const ChoiceEvent& event) const {
  const auto one = [&](int32_t id, double log_probability) {
    const std::string text = token_text(id);
    const std::string bytes = model_.tokenizer().bytes_of(id).value_or(text);
    ordered_json numbers = ordered_json::array();
    for (const char byte : bytes) numbers.push_back(static_cast<uint8_t>(byte));
    return ordered_json{{"token", text}, {"logprob", log_probability}, {"bytes", numbers}};
  };
  ordered_json token = one(*event.event.id, *event.event.log_probability);
  token["top_logprobs"] = ordered_json::array();
  for (const engine::TokenLogProbability& likely : event.event.likeliest)
    token["top_logprobs"].push_back(one(likely.id, likely.log_probability));
  return token;
}

// Those of tokens as token_json gives them, the first of which begins at the character `offset`.
ordered_json CompletionAnswer::log_probabilities(const ordered_json& tokens, int64_t offset) const {
  if (!request_.common.log_probabilities) return nullptr;
  if (request_.is_chat) return {{"content", tokens}, {"refusal", nullptr}};
  ordered_json lists = {{"tokens", ordered_json::array()},
                        {"token_logprobs", ordered_json::array()},
                        {"top_logprobs", ordered_json::array()},
                        {"text_offset", ordered_json::array()}};
  for (const ordered_json& token : tokens) {
    lists["tokens"].push_back(token["token"]);
    lists["token_logprobs"].push_back(token["logprob"]);
    ordered_json likeliest = ordered_json::object();
    for (const ordered_json& likely : token["top_logprobs"])
      likeliest[likely["token"].get<std::string>()] = likely["logprob"];
    lists["top_logprobs"].push_back(likeliest);
    lists["text_offset"].push_back(offset);
    offset += characters(token["token"].get<std::string>());
  }
  return lists;
}

ordered_json CompletionAnswer::frame(bool is_chunk) const {
  const char* object = !request_.is_chat ? "text_completion"
                       : is_chunk        ? "chat.completion.chunk"
                                         : "chat.completion";
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", request_.model}};
}

// `delta`: of a chat the object delta, of a completion the text; with logprobs and finish_reason.
ordered_json CompletionAnswer::chunk(int64_t choice, ordered_json delta) const {
  ordered_json json = frame(true);
  ordered_json one = {{"index", choice}};
  one.update(delta);
  json["choices"] = ordered_json::array({one});
  if (request_.has_usage) json["usage"] = nullptr;
  return json;
}

std::vector<ordered_json> CompletionAnswer::first_chunks() const {
  std::vector<ordered_json> chunks;
  if (!request_.is_chat) return chunks;
  chunks.reserve(choices_.size());
  for (size_t i = 0; i < choices_.size(); ++i)
    chunks.push_back(
        chunk(static_cast<int64_t>(i), {{"delta", {{"role", "assistant"}, {"content", ""}}},
                                        {"logprobs", nullptr},
                                        {"finish_reason", nullptr}}));
  return chunks;
}

// What the pieces of the last event add to a message. Of a call first who is called, as clients
// expect it, then with what.
std::vector<ordered_json> CompletionAnswer::deltas(const Choice& choice) const {
  std::vector<ordered_json> deltas;
  const auto call_delta = [&](ordered_json call, size_t number) {
    ordered_json one = {{"index", number}};
    one.update(call);
    deltas.push_back({{"delta", {{"tool_calls", ordered_json::array({one})}}}});
  };
  deltas.reserve(2 * choice.pieces.size());
  size_t number = choice.calls_before;
  for (const text::AnswerPiece& piece : choice.pieces) {
    switch (piece.kind) {
      case text::AnswerPiece::Kind::thought:
        deltas.push_back({{"delta", {{"reasoning_content", piece.text}}}});
        break;
      case text::AnswerPiece::Kind::content:
        deltas.push_back({{"delta", {{"content", piece.text}}}});
        break;
      case text::AnswerPiece::Kind::call: {
        ordered_json named = choice.calls[number];
        named["function"]["arguments"] = "";
        call_delta(named, number);
        call_delta({{"function", {{"arguments", piece.call.arguments}}}}, number);
        ++number;
      }
    }
  }
  return deltas;
}

std::vector<ordered_json> CompletionAnswer::chunks(const ChoiceEvent& event) const {
  std::vector<ordered_json> chunks;
  const bool has_token = shows_token(event.event);
  std::vector<ordered_json> parts;
  if (request_.is_chat)
    parts = deltas(choices_.at(static_cast<size_t>(event.choice)));
  else if (!event.event.text.empty())
    parts.push_back({{"text", event.event.text}});
  // A token may be told before its text is certain.
  if (parts.empty() && has_token)
    parts.push_back(request_.is_chat ? ordered_json{{"delta", {{"content", ""}}}}
                                     : ordered_json{{"text", ""}});
  for (ordered_json& part : parts) {
    const bool is_first = chunks.empty();
    part["logprobs"] = has_token && is_first
                           ? log_probabilities(ordered_json::array({token_json(event)}), 0)
                           : nullptr;
    part["finish_reason"] = nullptr;
    chunks.push_back(chunk(event.choice, std::move(part)));
  }
  if (event.event.finish) {
    ordered_json delta = request_.is_chat ? ordered_json{{"delta", ordered_json::object()}}
                                          : ordered_json{{"text", ""}};
    delta["logprobs"] = nullptr;
    delta["finish_reason"] = choices_.at(static_cast<size_t>(event.choice)).finish;
    chunks.push_back(chunk(event.choice, std::move(delta)));
  }
  return chunks;
}

ordered_json CompletionAnswer::usage() const {
  int64_t cached = 0;  // of the prompts, each once
  for (size_t i = 0; i < choices_.size(); i += static_cast<size_t>(request_.answers))
    cached += choices_[i].cached_tokens;
  const int64_t prompt = request_.prompt_tokens();
  ordered_json json = {{"prompt_tokens", prompt},
                       {"completion_tokens", new_tokens_},
                       {"total_tokens", prompt + new_tokens_},
                       {"prompt_tokens_details", {{"cached_tokens", cached}}}};
  if (request_.marks.thought != nullptr)
    json["completion_tokens_details"] = {{"reasoning_tokens", thought_tokens_}};
  return json;
}

ordered_json CompletionAnswer::usage_chunk() const {
  ordered_json json = frame(true);
  json["choices"] = ordered_json::array();
  json["usage"] = usage();
  return json;
}

ordered_json CompletionAnswer::message(const Choice& choice) const {
  ordered_json json = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
  if (!choice.thought.empty()) json["reasoning_content"] = choice.thought;
  if (choice.calls.empty()) return json;
  if (choice.text.empty()) json["content"] = nullptr;
  json["tool_calls"] = choice.calls;
  return json;
}

ordered_json CompletionAnswer::whole() const {
  ordered_json json = frame(false);
  json["choices"] = ordered_json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    ordered_json one = {{"index", i}};
    if (request_.is_chat)
      one["message"] = message(choice);
    else
      one["text"] = choice.text;
    one["logprobs"] = log_probabilities(choice.tokens, 0);
    one["finish_reason"] = choice.finish;
    json["choices"].push_back(one);
  }
  json["usage"] = usage();
  return json;
}

}  // namespace snug::serve
