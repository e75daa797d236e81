#include "generate/generate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/console.h"
#include "generate/generator.h"
#include "generate/prompt.h"
#include "text/folder_stop_ids.h"
#include "text/sentencepiece_folder.h"
#include "text/stream_decoder.h"

namespace snug::generate {
namespace {

// Prints text as ids come.
class Printer {
 public:
  Printer(const text::Tokenizer& tokenizer, std::span<const int32_t> prompt)
      : tokenizer_(tokenizer), decoder_(tokenizer) {
    decoder_.start_after(prompt);
  }

  void push(int32_t id) {
    const std::span<const int32_t> stops = tokenizer_.stop_ids();
    if (std::find(stops.begin(), stops.end(), id) != stops.end()) return;
    print(decoder_.push(id));
  }
  void finish() { print(decoder_.finish() + "\n"); }

 private:
  static void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    base::flush_output();
  }

  const text::Tokenizer& tokenizer_;
  text::StreamDecoder decoder_;
};

class Session {
 public:
  explicit Session(const formats::Recipe& recipe)
      : recipe_(recipe), model_(runtime::open_model(recipe)) {
    if (recipe.ids.empty() == recipe.prompt.empty())
      recipe.fail("prompt", recipe.ids.empty()
                                ? "is missing: give prompt=\"...\", the text to continue, or ids="
                                : "is given next to ids; give one of the two");
    if (!recipe.ids.empty() && recipe.is_given("prompt_format"))
      recipe.fail("prompt_format", "is about prompt, and ids= are taken as they are; leave it out");
    if (has_tokenizer()) tokenizer_.emplace(open_tokenizer(recipe, model_));
    prompt_ = recipe.ids.empty() ? recipe_prompt(recipe, *tokenizer_, model_.config.has_encoder())
                                 : recipe_ids(recipe, model_.config);
  }

  void run(bool json) {
    const auto prompt_tokens = static_cast<int64_t>(prompt_.size());
    GenerationOptions options{.sampling = {.temperature = recipe_.temperature,
                                           .top_k = recipe_.top_k,
                                           .top_p = recipe_.top_p,
                                           .seed = recipe_.seed},
                              .max_new_tokens = new_tokens(recipe_, model_.config, prompt_tokens),
                              .stop_ids = {}};
    say_longrope_border(model_.config, prompt_tokens, options.max_new_tokens);
    if (tokenizer_)
      options.stop_ids.assign(tokenizer_->stop_ids().begin(), tokenizer_->stop_ids().end());
    else if (!model_.folder.empty())
      options.stop_ids = text::folder_stop_ids(model_.folder);
    const std::vector<Ids> prompts{prompt_};
    Inference inference(recipe_, model_,
                        shape_for(prompts, options, 1, prompt_reader(model_.config)));
    Generator generator(inference);
    if (json)
      print_json(generator.run(prompts, options).front(), generator.times(), inference);
    else
      print_text(generator, prompts, options);
  }

 private:
  // What the answer continues; of an encoder-decoder it is a text of its own.
  std::span<const int32_t> before_answer() const {
    if (model_.config.has_encoder()) return {};
    return prompt_;
  }

  // Ids alone need none; a folder that has one gives the text, too.
  bool has_tokenizer() const {
    return recipe_.ids.empty() ||
           (!model_.folder.empty() && (std::filesystem::exists(model_.folder / "tokenizer.json") ||
                                       !text::find_sentencepiece(model_.folder.string()).empty()));
  }

  void print_text(Generator& generator, const std::vector<Ids>& prompts,
                  const GenerationOptions& options) {
    if (!tokenizer_) {
      base::print("{}\n", fmt::join(generator.run(prompts, options).front().ids, " "));
      return;
    }
    Printer printer(*tokenizer_, before_answer());
    generator.run(prompts, options, [&](int64_t, int32_t id) { printer.push(id); });
    printer.finish();
  }

  void print_json(const Generation& generation, const GenerationTimes& times,
                  const Inference& inference) const {
    const auto count = static_cast<double>(generation.ids.size());
    nlohmann::json result = {
        {"text", nullptr},
        {"ids", generation.ids},
        {"finish_reason", generation.stopped ? "stop" : "length"},
        {"prompt_tokens", prompt_.size()},
        {"new_tokens", generation.ids.size()},
        {"tokens_per_second", count / (times.prefill_seconds + times.decode_seconds)},
        {"prefill_seconds", times.prefill_seconds},
        {"decode_seconds", times.decode_seconds},
        {"device", inference.device_json()}};
    if (tokenizer_) result["text"] = answer_text(*tokenizer_, before_answer(), generation.ids);
    base::print("{}\n", result.dump());
  }

  const formats::Recipe& recipe_;
  models::ModelSource model_;
  std::optional<text::Tokenizer> tokenizer_;
  Ids prompt_;
};

}  // namespace

int generate(const formats::Recipe& recipe, bool json) {
  Session(recipe).run(json);
  return 0;
}

}  // namespace snug::generate
