#include "train/rewards/generation.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace snug::train {

using nlohmann::json;

namespace {

// No number is null in JSON.
std::vector<double> numbers_of(const json& list) {
  std::vector<double> numbers;
  numbers.reserve(list.size());
  for (const json& each : list)
    numbers.push_back(each.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                     : each.get<double>());
  return numbers;
}

}  // namespace

std::string to_json(const Generation& generation) {
  json answers = json::array();
  for (const LearnedAnswer& answer : generation.answers)
    answers.push_back({{"prompt", answer.prompt},
                       {"ids", answer.ids},
                       {"log_probabilities", answer.log_probabilities},
                       {"entropies", answer.entropies},
                       {"ended", answer.ended},
                       {"text", answer.text},
                       {"rewards", answer.rewards},
                       {"advantage", answer.advantage}});
  return json{{"answers", std::move(answers)}}.dump();
}

Generation parse_generation(std::string_view text) {
  const json document = base::parse_json(text, "the answers in trainer_state.json");
  Generation generation;
  try {
    const json& answers = document.at("answers");
    generation.answers.reserve(answers.size());
    for (const json& each : answers) {
      LearnedAnswer answer;
      answer.prompt = each.at("prompt");
      each.at("ids").get_to(answer.ids);
      each.at("log_probabilities").get_to(answer.log_probabilities);
      each.at("entropies").get_to(answer.entropies);
      answer.ended = each.at("ended");
      answer.text = each.at("text");
      answer.rewards = numbers_of(each.at("rewards"));
      answer.advantage = each.at("advantage");
      generation.answers.push_back(std::move(answer));
    }
  } catch (const json::exception& error) {
    base::throw_user_error(
        "the answers in trainer_state.json, from which the run was learning, cannot be read ({}); "
        "resume from an earlier checkpoint",
        error.what());
  }
  return generation;
}

}  // namespace snug::train
