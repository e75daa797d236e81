// An answer as a line of JSON: index, the fields that are passed on, text, finish_reason,
// prompt_tokens, new_tokens; ids, logprobs and top_logprobs where they are asked for; or an error.
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "generate/prompts_file/prompt_lines.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::generate {

// Of a line of prompts what its answer says, once it is whole.
struct LineAnswer {
  int64_t index = 0;
  nlohmann::json passed_on{};
  std::string error{};  // why there is no answer; empty: there is
  bool wants_ids = false;
  int64_t prompt_tokens = 0;
  std::string text{};
  engine::Ids ids{};
  std::vector<double> log_probabilities{};
  std::vector<std::vector<engine::TokenLogProbability>> likeliest{};
  engine::Finish finish = engine::Finish::length;
};

// Takes what an event adds.
void add_event(LineAnswer& answer, const engine::AnswerEvent& event);

std::string_view finish_word(engine::Finish finish);

// Tokens with their log-probabilities. `tokenizer`: null where there is no text.
nlohmann::ordered_json likeliest_json(const std::vector<engine::TokenLogProbability>& likeliest,
                                      const text::Tokenizer* tokenizer);

// `tokenizer`: null where there is no text. A field that is passed on under a name that an answer
// has itself is called input_NAME.
std::string answer_line(const LineAnswer& answer, const text::Tokenizer* tokenizer);

}  // namespace snug::generate
