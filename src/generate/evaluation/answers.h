// Answers to prompts, for everything that is evaluated by what a model writes: the one place where
// an evaluation generates.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/request.h"
#include "generate/evaluation/run_of_model.h"

namespace snug::generate {

struct AskedPrompt {
  engine::Request request;
  // The answer is decoded as the text that goes on after its prompt, not as one of its own.
  bool continues_prompt = false;
};

// The answers, in the order of the prompts, without what ended them. Opens the model once.
std::vector<std::string> answers_to(const ModelToAsk& model, std::span<const AskedPrompt> prompts,
                                    RunOfModel& run);

}  // namespace snug::generate
