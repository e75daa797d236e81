// Turns what a user asks into the ids that the model continues: the same ids that training puts
// before an answer.
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

namespace snug::engine {

// The tokenizer of the model's folder, or of the adapter's folder where the adapter adds rows for
// more tokens. It refuses texts with tokens that the model has no row for. Throws UserError for a
// preset, a folder without tokenizer.json, and an unknown chat_template.
text::Tokenizer open_tokenizer(const formats::Recipe& recipe, const models::ModelSource& model);

// The ids of a raw text, after the tokens that the tokenizer puts before a text (often BOS).
std::vector<int32_t> text_prompt(const text::Tokenizer& tokenizer, const std::string& text);

// The ids that training puts before `answer`. A token that would span the end of the prompt and the
// start of the answer, such as a space with the word after it, is left for the model to generate.
std::vector<int32_t> prompt_before(const text::Tokenizer& tokenizer, const std::string& prompt,
                                   const std::string& answer);

// The ids of a conversation up to where the assistant's next text begins.
std::vector<int32_t> chat_prompt(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat,
                                 const text::Conversation& conversation);

// The ids of a text that a chat template wrote, with the tokens that it names.
std::vector<int32_t> rendered_prompt(const text::Tokenizer& tokenizer, const std::string& text);

// The encoder's input for a text: with every token that the tokenizer adds around a text, EOS at
// its end included.
std::vector<int32_t> encoder_prompt(const text::Tokenizer& tokenizer, const std::string& text);

// The ids of recipe.prompt in the form that recipe.prompt_format names. `has_encoder`: the ids are
// an encoder's input. Throws UserError for a conversation with an encoder-decoder.
std::vector<int32_t> recipe_prompt(const formats::Recipe& recipe, const text::Tokenizer& tokenizer,
                                   bool has_encoder);

// recipe.ids or recipe.answer_ids, converted to int32. Throws UserError for an id that the model
// has no row for.
std::vector<int32_t> recipe_ids(const formats::Recipe& recipe, const models::ModelConfig& model);
std::vector<int32_t> recipe_answer_ids(const formats::Recipe& recipe,
                                       const models::ModelConfig& model);

// The ids that end an answer: the tokenizer's end tokens and, in a chat, the tokens with which the
// chat template ends an assistant's turn.
std::vector<int32_t> end_ids(const formats::Recipe& recipe, const text::Tokenizer& tokenizer,
                             bool is_chat);

// The number of new tokens for prompts of at most `prompt_tokens`: max_new_tokens. If the user did
// not set that, fewer where the model has fewer positions left. Throws UserError when the prompt
// leaves no room.
int64_t new_tokens(const formats::Recipe& recipe, const models::ModelConfig& model,
                   int64_t prompt_tokens);

// Prints a note where `new_tokens` more take a prompt of a longrope model beyond the positions for
// which its short factors hold.
void say_longrope_border(const models::ModelConfig& model, int64_t prompt_tokens,
                         int64_t new_tokens);

}  // namespace snug::engine
