#include "generate/generate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/console.h"
#include "engine/engine.h"
#include "engine/questions/prompt.h"
#include "engine/request_shape.h"
#include "generate/folder_sampling.h"
#include "generate/prompts_file/answer_line.h"
#include "generate/prompts_file/prompts_file.h"
#include "generate/recipe_request.h"
#include "text/chat/folder_stop_ids.h"

namespace snug::generate {
namespace {

void print_now(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  base::flush_output();
}

class Session {
 public:
  explicit Session(const formats::Recipe& recipe)
      : model_(runtime::open_model(recipe)), recipe_(with_folder_sampling(recipe, model_)) {
    if (recipe.ids.empty() == recipe.prompt.empty())
      recipe.fail("prompt", recipe.ids.empty()
                                ? "is missing: give prompt=\"...\", the text to continue, or ids="
                                : "is given next to ids; give one of the two");
    if (!recipe.ids.empty() && recipe.is_given("prompt_format"))
      recipe.fail("prompt_format", "is about prompt, and ids= are taken as they are; leave it out");
    if (!recipe.system.empty() && recipe.prompt_format != formats::PromptFormat::chat)
      recipe.fail("system", "is a message of a conversation; give prompt_format=chat next to it");
    // A prompt of ids needs no tokenizer; but if the folder has one, the text is given as well.
    if (recipe.ids.empty() || has_tokenizer(model_))
      tokenizer_.emplace(engine::open_tokenizer(recipe, model_));
    if (!recipe.stop.empty() && !tokenizer_)
      recipe.fail("stop", "is compared with text, but the model folder has no tokenizer");
    prompt_ = recipe.ids.empty()
                  ? engine::recipe_prompt(recipe, *tokenizer_, model_.config.has_encoder())
                  : engine::recipe_ids(recipe, model_.config);
    end_ = end_of_answer();
    if (tokenizer_) forms_.emplace(*tokenizer_);
    form_ = recipe_form(recipe, forms_ ? &*forms_ : nullptr);
  }

  void run(bool json) {
    if (recipe_.logprobs >= 0 && !json)
      recipe_.fail("logprobs", "is for programs: give --json, whose object has them");
    const engine::Request request = this->request();
    check_guesses(recipe_, request);
    const std::string ignored = text::ignored_stop_ids(model_.folder, recipe_.adapter);
    if (!ignored.empty()) base::say("{}", ignored);
    engine::say_longrope_border(model_.config, std::ssize(request.prompt), request.max_new_tokens);
    engine::Inference inference(
        recipe_, model_, with_guesses(recipe_, engine::shape_for({&request, 1}, 1, model_.config)));
    engine::Engine engine(inference, tokenizer_ ? &*tokenizer_ : nullptr);
    engine::Answer answer;
    engine.submit(request, [&](const engine::AnswerEvent& event) {
      engine::add_to(answer, event);
      if (event.log_probability) likeliest_.push_back(event.likeliest);
      if (!json) print_now(event.text);
    });
    while (engine.step()) continue;
    if (json)
      print_json(answer, engine.times(), inference);
    else
      base::print("{}\n", tokenizer_ ? "" : fmt::format("{}", fmt::join(answer.ids, " ")));
  }

 private:
  engine::Request request() const {
    return {.prompt = prompt_,
            .max_new_tokens = engine::new_tokens(recipe_, model_.config, std::ssize(prompt_)),
            .sampling = recipe_sampling(recipe_),
            .end = end_,
            .log_probabilities = recipe_log_probabilities(recipe_),
            .deadline = {},
            .form = form_};
  }

  // A stop text that is a special token, which decoded text does not show, stops by its id.
  engine::AnswerEnd end_of_answer() const {
    if (!tokenizer_)
      return answer_end(text::folder_stop_ids(model_.folder, recipe_.adapter), recipe_.stop,
                        nullptr);
    const bool is_chat = recipe_.prompt_format == formats::PromptFormat::chat;
    return answer_end(engine::end_ids(recipe_, *tokenizer_, is_chat), recipe_.stop, &*tokenizer_);
  }

  void print_json(const engine::Answer& answer, const engine::EngineTimes& times,
                  const engine::Inference& inference) const {
    const auto count = static_cast<double>(answer.ids.size());
    nlohmann::json result = {
        {"text", nullptr},
        {"ids", answer.ids},
        {"finish_reason", finish_word(answer.finish)},
        {"prompt_tokens", prompt_.size()},
        {"new_tokens", answer.ids.size()},
        {"tokens_per_second", count / (times.prefill_seconds + times.decode_seconds)},
        {"prefill_seconds", times.prefill_seconds},
        {"decode_seconds", times.decode_seconds},
        {"device", inference.device_json()}};
    if (recipe_.prompt_lookup_num_tokens > 0)
      result["prompt_lookup"] = {{"guessed_tokens", times.guessed_tokens},
                                 {"right_guesses", times.right_guesses},
                                 {"decode_runs", times.decode_runs}};
    if (tokenizer_) result["text"] = answer.text;
    if (recipe_.logprobs >= 0) result["logprobs"] = answer.log_probabilities;
    if (recipe_.logprobs > 0) result["top_logprobs"] = top_log_probabilities();
    base::print("{}\n", result.dump());
  }

  // Of each new token, those that were the likeliest in its place.
  nlohmann::json top_log_probabilities() const {
    nlohmann::json all = nlohmann::json::array();
    for (const std::vector<engine::TokenLogProbability>& tokens : likeliest_)
      all.emplace_back(likeliest_json(tokens, tokenizer_ ? &*tokenizer_ : nullptr));
    return all;
  }

  models::ModelSource model_;
  const formats::Recipe recipe_;
  std::optional<text::Tokenizer> tokenizer_;
  engine::Ids prompt_;
  engine::AnswerEnd end_;
  std::optional<engine::AnswerForms> forms_;
  engine::AnswerForms::Form form_;
  std::vector<std::vector<engine::TokenLogProbability>> likeliest_;
};

}  // namespace

int generate(const formats::Recipe& recipe, bool json) {
  if (!recipe.prompts.empty()) return answer_prompts(recipe, json);
  if (!recipe.adapters.empty())
    recipe.fail("adapters",
                "are chosen by the lines of a file of prompts and in a chat; for one prompt give "
                "adapter=FOLDER");
  if (!recipe.output.empty())
    recipe.fail("output", "is the file of answers to a file of prompts; give prompts=FILE too");
  Session(recipe).run(json);
  return 0;
}

}  // namespace snug::generate
