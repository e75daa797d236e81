// The answers that a model gave to some prompts, with what they were rewarded: what a few updates
// learn from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug::train {

struct LearnedAnswer {
  int64_t prompt = 0;        // index into all prompts of the run
  std::vector<int32_t> ids;  // what ended it included
  // Of each id, by the model that made it: log_softmax(logits / temperature).
  std::vector<float> log_probabilities{};
  std::vector<float> entropies{};  // of the distribution that each id was drawn from, in nats
  bool ended = false;              // by itself
  std::string text{};              // as it is shown and rewarded, in UTF-8
  std::vector<double> rewards{};   // of each function; no number where one says nothing
  double advantage = 0;
};

// Answers to one prompt lie next to one another.
struct Generation {
  std::vector<LearnedAnswer> answers{};

  int64_t size() const { return std::ssize(answers); }
};

// As JSON text; numbers read back with the same bits.
std::string to_json(const Generation& generation);
// Throws UserError for a text that is none.
Generation parse_generation(std::string_view text);

}  // namespace snug::train
