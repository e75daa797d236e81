// Turns a conversation into one text by running a chat template (jinja/): that of the model's
// folder, or one that the user chose, which is a file or a built-in template (chat_forms.h). What
// the assistant wrote is learned: the spans that the template marks with {% generation %}, or else
// those that answer_spans.h finds. A conversation is first brought into the form that the template
// expects (fitted_conversation.h). Immutable; may be used from any thread. The tokenizer must
// outlive it.
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

// Throws UserError unless the user's word is empty (the model's own template), names a built-in
// template, names one as a fallback for models without a template
// (tokenizer_default_fallback_NAME), or is a file with a valid template.
void check_chat_template(std::string_view word);
// Whether the word names a built-in template.
bool is_chat_template_name(std::string_view word);

class ChatTemplate {
 public:
  // `asked`: as for check_chat_template. Throws UserError if the folder has no template, if a
  // template is invalid, or if the tokenizer lacks a token that a built-in template needs.
  ChatTemplate(std::string_view asked, const Tokenizer& tokenizer);

  // The name of a built-in template, the file's name, or "the model's own".
  const std::string& name() const { return name_; }

  // The source that a saved folder needs as its template to render the same; nothing if that is the
  // folder's own template.
  const std::optional<std::string>& source() const { return source_; }

  // Renders the whole conversation as parts, with what is learned. Throws UserError if the template
  // refuses the conversation, or if the answers cannot be located.
  std::vector<Part> render(const Conversation& conversation) const;

  // The whole conversation as one text.
  std::string text(const Conversation& conversation) const;

  // The text up to where the assistant's next text begins.
  std::string prompt(const Conversation& conversation) const;

  // The ids with which an assistant's turn ends, as far as they are added tokens.
  std::vector<int32_t> turn_ends() const;

  // What the template leaves out of the conversation, rendered as a whole or as a prompt.
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
  std::time_t now_;  // the time that templates see, the same for all conversations
  std::unique_ptr<const jinja::Template> usual_;
  std::unique_ptr<const jinja::Template> for_tools_;  // null: the usual template
  jinja::Variables tokens_;                           // special tokens by name
  bool takes_parts_only_ = false;
};

}  // namespace snug::text
