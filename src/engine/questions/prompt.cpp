#include "engine/questions/prompt.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/console.h"
#include "base/error.h"
#include "text/record/document.h"
#include "text/record/record_form.h"

namespace snug::engine {
namespace {

using text::Part;
using text::SpecialTokens;

std::vector<int32_t> ids_of(const text::Tokenizer& tokenizer, std::span<const Part> parts,
                            SpecialTokens special) {
  return text::tokenize_parts(tokenizer, parts, special).ids;
}

std::vector<int32_t> narrowed(const formats::Recipe& recipe, const char* key,
                              const std::vector<int64_t>& wide, const models::ModelConfig& model) {
  std::vector<int32_t> ids;
  for (const int64_t id : wide) {
    if (id >= model.vocab_size)
      recipe.fail(key, fmt::format("holds {}, but the model's vocabulary has {} ids, 0 to {}", id,
                                   model.vocab_size, model.vocab_size - 1));
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

// The conversation that the recipe asks. Throws where the template would leave out a part of it.
text::Conversation asked(const formats::Recipe& recipe, const text::ChatTemplate& chat) {
  text::Conversation conversation;
  if (!recipe.system.empty()) conversation.messages.emplace_back("system", recipe.system);
  conversation.messages.emplace_back("user", recipe.prompt);
  for (const text::Unwritten& one : chat.unwritten(conversation, true))
    recipe.fail(one.role == "system" ? "system" : "prompt",
                fmt::format("{} in what the chat template writes; leave it out, or choose another "
                            "template with chat_template=",
                            one.extent.empty() ? "is nowhere"
                                               : fmt::format("lacks {} its text", one.extent)));
  return conversation;
}

std::vector<int32_t> asked_ids(const formats::Recipe& recipe, const text::Tokenizer& tokenizer) {
  const text::ChatTemplate chat(recipe.chat_template, tokenizer);
  return chat_prompt(tokenizer, chat, asked(recipe, chat));
}

// The tokenizer of the adapter's folder, where that has tokens that the model's tokenizer lacks: in
// rows that the adapter brings, or that the model has to spare.
std::optional<text::Tokenizer> larger_tokenizer(const formats::Recipe& recipe,
                                                const models::ModelSource& model,
                                                const text::Tokenizer& of_model) {
  if (!text::has_other_tokenizer(recipe.adapter, model.folder)) return std::nullopt;
  auto of_adapter = text::Tokenizer::from_folder(recipe.adapter, model.config.vocab_size);
  const int32_t size = of_adapter.vocabulary_size();
  const bool is_larger = size > of_model.vocabulary_size() && size <= model.config.vocab_size;
  return is_larger ? std::optional(std::move(of_adapter)) : std::nullopt;
}

}  // namespace

text::Tokenizer open_tokenizer(const formats::Recipe& recipe, const models::ModelSource& model) {
  if (model.folder.empty())
    recipe.fail("model", fmt::format("\"{}\" is a built-in shape without a tokenizer; give the "
                                     "folder of a model, or ids= in place of a text",
                                     recipe.model));
  // Reports an unknown template even for a raw prompt, which needs none.
  text::check_chat_template(recipe.chat_template);
  auto tokenizer =
      text::Tokenizer::from_folder(model.folder.string(), model.config.vocab_size, recipe.adapter);
  if (auto larger = larger_tokenizer(recipe, model, tokenizer)) return std::move(*larger);
  return tokenizer;
}

std::vector<int32_t> text_prompt(const text::Tokenizer& tokenizer, const std::string& text) {
  return ids_of(tokenizer, std::vector<Part>{{text, -1, false}}, SpecialTokens::before);
}

std::vector<int32_t> prompt_before(const text::Tokenizer& tokenizer, const std::string& prompt,
                                   const std::string& answer) {
  text::Document document = text::tokenize_parts(
      tokenizer, std::vector<Part>{{prompt, -1, false}, {answer, -1, true}}, SpecialTokens::before);
  const auto first = std::find(document.trained.begin(), document.trained.end(), 1);
  document.ids.resize(static_cast<size_t>(first - document.trained.begin()));
  return std::move(document.ids);
}

std::vector<int32_t> chat_prompt(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat,
                                 const text::Conversation& conversation) {
  return rendered_prompt(tokenizer, chat.prompt(conversation));
}

std::vector<int32_t> rendered_prompt(const text::Tokenizer& tokenizer, const std::string& text) {
  return ids_of(tokenizer, std::vector<Part>{{text, -1, false}}, SpecialTokens::none);
}

std::vector<int32_t> encoder_prompt(const text::Tokenizer& tokenizer, const std::string& text) {
  return ids_of(tokenizer, std::vector<Part>{{text, -1, false}}, SpecialTokens::around);
}

std::vector<int32_t> recipe_prompt(const formats::Recipe& recipe, const text::Tokenizer& tokenizer,
                                   bool has_encoder) {
  const auto prompt = [&](const std::string& text) {
    return has_encoder ? encoder_prompt(tokenizer, text) : text_prompt(tokenizer, text);
  };
  switch (recipe.prompt_format) {
    case formats::PromptFormat::raw:
      return prompt(recipe.prompt);
    case formats::PromptFormat::alpaca:
      return prompt(text::alpaca_prompt(recipe.prompt, ""));
    case formats::PromptFormat::chat:
      if (has_encoder)
        recipe.fail("prompt_format",
                    "is chat, which is not built for encoder-decoders; use raw or alpaca");
      return asked_ids(recipe, tokenizer);
  }
  return {};
}

std::vector<int32_t> recipe_ids(const formats::Recipe& recipe, const models::ModelConfig& model) {
  return narrowed(recipe, "ids", recipe.ids, model);
}

std::vector<int32_t> recipe_answer_ids(const formats::Recipe& recipe,
                                       const models::ModelConfig& model) {
  return narrowed(recipe, "answer_ids", recipe.answer_ids, model);
}

std::vector<int32_t> end_ids(const formats::Recipe& recipe, const text::Tokenizer& tokenizer,
                             bool is_chat) {
  std::vector<int32_t> ids(tokenizer.stop_ids().begin(), tokenizer.stop_ids().end());
  if (!is_chat) return ids;
  for (const int32_t id : text::ChatTemplate(recipe.chat_template, tokenizer).turn_ends())
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  return ids;
}

int64_t new_tokens(const formats::Recipe& recipe, const models::ModelConfig& model,
                   int64_t prompt_tokens) {
  const int64_t room = model.max_position - prompt_tokens;
  if (room < 1)
    base::throw_user_error(
        "the prompt has {} tokens and the model has {} positions, which leaves none for an answer; "
        "shorten the prompt to {} tokens",
        prompt_tokens, model.max_position, model.max_position - 1);
  if (recipe.max_new_tokens <= room) return recipe.max_new_tokens;
  if (recipe.is_given("max_new_tokens"))
    recipe.fail("max_new_tokens",
                fmt::format("is {}, but the prompt has {} tokens and the model has {} positions; "
                            "use max_new_tokens={}",
                            recipe.max_new_tokens, prompt_tokens, model.max_position, room));
  return room;
}

void say_longrope_border(const models::ModelConfig& model, int64_t prompt_tokens,
                         int64_t new_tokens) {
  const int64_t border = model.rope.original_max_position;
  // The last new token is returned but never fed back into the model, so it needs no position.
  const int64_t most = prompt_tokens + new_tokens - 1;
  if (model.rope.uses_long_factors(prompt_tokens) || !model.rope.uses_long_factors(most)) return;
  base::say(
      "longrope: {} tokens of prompt and up to {} new ones pass original_max_position_embeddings "
      "({}), so that all positions take the long factors, from the first on; transformers takes "
      "the "
      "short ones up to there. max_new_tokens={} stays with the short ones",
      prompt_tokens, new_tokens, border, border - prompt_tokens + 1);
}

}  // namespace snug::engine
