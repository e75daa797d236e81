#include "generate/evaluation/answers.h"

#include "engine/answer_text.h"
#include "engine/engine.h"
#include "engine/request_shape.h"

namespace snug::generate {

std::vector<std::string> answers_to(const ModelToAsk& model, std::span<const AskedPrompt> prompts,
                                    RunOfModel& run) {
  std::vector<std::string> texts;
  if (prompts.empty()) return texts;
  std::vector<engine::Request> requests;
  requests.reserve(prompts.size());
  for (const AskedPrompt& prompt : prompts) requests.push_back(prompt.request);
  engine::Inference inference(model.recipe, model.source,
                              engine::shape_for(requests, model.recipe.batch, model.source.config));
  engine::Engine engine(inference, &model.tokenizer);
  const std::vector<engine::Answer> answers = engine.answers(requests);
  run.add(engine.times().prefill_seconds + engine.times().decode_seconds, inference);
  texts.reserve(answers.size());
  for (size_t i = 0; i < answers.size(); ++i)
    texts.push_back(
        prompts[i].continues_prompt
            ? answers[i].text
            : engine::answer_text(model.tokenizer, {}, answers[i].ids, requests[i].end));
  return texts;
}

}  // namespace snug::generate
