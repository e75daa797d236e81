#include "generate/prompts_file/answer_line.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/tokenizer/stream_decoder.h"

namespace snug::generate {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::array<std::string_view, 9> kAnswerFields{
    "index", "text",     "finish_reason", "prompt_tokens", "new_tokens",
    "ids",   "logprobs", "top_logprobs",  "error"};

std::string passed_name(const std::string& name) {
  const bool is_taken = std::ranges::find(kAnswerFields, name) != kAnswerFields.end();
  return is_taken ? "input_" + name : name;
}

void set_answer(const LineAnswer& answer, const text::Tokenizer* tokenizer, OrderedJson& line) {
  line["text"] = tokenizer == nullptr ? OrderedJson(nullptr) : OrderedJson(answer.text);
  line["finish_reason"] = finish_word(answer.finish);
  line["prompt_tokens"] = answer.prompt_tokens;
  line["new_tokens"] = answer.ids.size();
  const bool has_log_probabilities = !answer.log_probabilities.empty();
  if (answer.wants_ids || has_log_probabilities) line["ids"] = answer.ids;
  if (has_log_probabilities) line["logprobs"] = answer.log_probabilities;
  if (std::ranges::all_of(answer.likeliest, &std::vector<engine::TokenLogProbability>::empty))
    return;
  line["top_logprobs"] = OrderedJson::array();
  for (const auto& likeliest : answer.likeliest)
    line["top_logprobs"].push_back(likeliest_json(likeliest, tokenizer));
}

}  // namespace

nlohmann::ordered_json likeliest_json(const std::vector<engine::TokenLogProbability>& likeliest,
                                      const text::Tokenizer* tokenizer) {
  OrderedJson list = OrderedJson::array();
  for (const auto& [id, log_probability] : likeliest) {
    OrderedJson token{{"id", id}};
    if (tokenizer != nullptr) token["token"] = tokenizer->token_of(id).value_or("");
    token["logprob"] = log_probability;
    list.push_back(std::move(token));
  }
  return list;
}

void add_event(LineAnswer& answer, const engine::AnswerEvent& event) {
  answer.text += event.text;
  if (event.id) answer.ids.push_back(*event.id);
  if (event.log_probability) {
    answer.log_probabilities.push_back(*event.log_probability);
    answer.likeliest.push_back(event.likeliest);
  }
  if (event.finish) answer.finish = *event.finish;
}

std::string_view finish_word(engine::Finish finish) {
  switch (finish) {
    case engine::Finish::stop:
      return "stop";
    case engine::Finish::length:
      return "length";
    case engine::Finish::cancelled:
      return "cancelled";
    case engine::Finish::deadline:
      return "deadline";
  }
  return "";
}

std::string answer_line(const LineAnswer& answer, const text::Tokenizer* tokenizer) {
  OrderedJson line{{"index", answer.index}};
  for (const auto& [name, value] : answer.passed_on.items())
    line[passed_name(name)] = OrderedJson(value);
  if (answer.error.empty())
    set_answer(answer, tokenizer, line);
  else
    line["error"] = answer.error;
  return line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace snug::generate
