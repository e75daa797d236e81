// How a conversation becomes one text: the chat template of the model's folder is run (jinja/), or
// one that the user chose, which is a file or one of those built in (chat_forms.h).
// What is learned is what the assistant wrote: the spans that the template marks with
// {% generation %}, else those that answer_spans.h finds. A conversation is given in the form that
// the template writes (fitted_conversation.h).
// Immutable; may be used from any thread. The tokenizer must outlive it.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/conversation.h"
#include "text/chat/jinja/template.h"
#include "text/chat/unwritten.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

// Throws UserError unless a user's word is empty (the model's own), names a built-in template,
// alone or as what to take where the model has none of its own (tokenizer_default_fallback_NAME),
// or is a file that holds a template which can be read.
void check_chat_template(std::string_view word);
// Whether the word names a built-in template.
bool is_chat_template_name(std::string_view word);

class ChatTemplate {
 public:
  // `asked` as for check_chat_template. Throws UserError where the folder has no template, where
  // one cannot be read, and where the tokenizer lacks a token that a built-in one needs.
  ChatTemplate(std::string_view asked, const Tokenizer& tokenizer);

  // The name of a built-in one, the file's, or "the model's own".
  const std::string& name() const { return name_; }

  // What a folder must hold as its template so that others write the same; nothing where that is
  // the folder's own.
  const std::optional<std::string>& source() const { return source_; }

  // The whole conversation, with what is learned. Throws UserError where the template refuses it or
  // the answers cannot be told from the rest.
  std::vector<Part> render(const Conversation& conversation) const;

  // The whole conversation as one text.
  std::string text(const Conversation& conversation) const;

  // Up to where the assistant's next text begins.
  std::string prompt(const Conversation& conversation) const;

  // The ids that it ends an assistant's turn with, as far as they are added tokens.
  std::vector<int32_t> turn_ends() const;

  // What the template leaves out of the conversation, as a whole or as a prompt.
  std::vector<Unwritten> unwritten(const Conversation& conversation,
                                   bool for_generation = false) const;

 private:
  using Rendering = jinja::Template::Rendering;

  void choose_form(std::string_view word);
  void read_own();
  const jinja::Template& chosen(const Conversation& conversation) const;
  Rendering run(const Conversation& conversation, bool for_generation) const;
  Rendering run_whole(const Conversation& conversation, bool for_generation) const;
  RenderChat renderer(bool for_generation) const;
  Conversation fitted(const Conversation& given, bool for_generation) const;

  const Tokenizer& tokenizer_;
  std::string name_;
  std::optional<std::string> source_;
  std::time_t now_;  // that templates see, the same for all conversations
  std::unique_ptr<const jinja::Template> usual_;
  std::unique_ptr<const jinja::Template> for_tools_;  // null: as usual
  jinja::Variables tokens_;                           // special tokens by name
  bool takes_parts_only_ = false;
};

}  // namespace snug::text
