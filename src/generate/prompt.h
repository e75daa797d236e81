// What a user asks, as the ids that a model continues: the same ids that training puts before an
// answer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "text/chat/chat_template.h"
#include "text/chat/conversation.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::generate {

// The tokenizer of a model's folder, or of an adapter's where that brings rows for more tokens. It
// refuses texts with tokens that the model has no row for. Throws UserError for a preset, a folder
// without tokenizer.json, and an unknown chat_template.
text::Tokenizer open_tokenizer(const formats::Recipe& recipe, const models::ModelSource& model);

// The ids of a text as it is, with what the tokenizer puts before one (often BOS).
std::vector<int32_t> text_prompt(const text::Tokenizer& tokenizer, const std::string& text);

// The ids that training puts before `answer`: a token that spans from prompt into answer, such as a
// space and the word after it, is left to the model.
std::vector<int32_t> prompt_before(const text::Tokenizer& tokenizer, const std::string& prompt,
                                   const std::string& answer);

// The ids of a conversation up to where the assistant's next text begins.
std::vector<int32_t> chat_prompt(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat,
                                 const text::Conversation& conversation);

// What an encoder reads of a text: with all that the tokenizer puts around one, EOS at its end.
std::vector<int32_t> encoder_prompt(const text::Tokenizer& tokenizer, const std::string& text);

// recipe.prompt in the form that recipe.prompt_format names; for an encoder, if the model has one.
// Throws UserError for a conversation with an encoder-decoder.
std::vector<int32_t> recipe_prompt(const formats::Recipe& recipe, const text::Tokenizer& tokenizer,
                                   bool has_encoder);

// recipe.ids, or answer_ids, narrowed. Throws UserError for one that the model has no row for.
std::vector<int32_t> recipe_ids(const formats::Recipe& recipe, const models::ModelConfig& model);
std::vector<int32_t> recipe_answer_ids(const formats::Recipe& recipe,
                                       const models::ModelConfig& model);

// The ids that end an answer: those of the tokenizer and, in a chat, what the chat template ends an
// assistant's turn with.
std::vector<int32_t> end_ids(const formats::Recipe& recipe, const text::Tokenizer& tokenizer,
                             bool is_chat);

// New tokens for prompts of at most `prompt_tokens`: max_new_tokens, or, when the user did not
// give it, what is left of the model's positions if that is less. Throws UserError when the
// prompt leaves no room.
int64_t new_tokens(const formats::Recipe& recipe, const models::ModelConfig& model,
                   int64_t prompt_tokens);

// Says so where `new_tokens` more take a prompt of a longrope model beyond the positions of its
// short factors.
void say_longrope_border(const models::ModelConfig& model, int64_t prompt_tokens,
                         int64_t new_tokens);

}  // namespace snug::generate
