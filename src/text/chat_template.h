// Chat templates that are built in: how a conversation becomes one text. A folder's own template
// is a Jinja program; it is recognised by its markers, not run.
//   chatml    <|im_start|>ROLE\nTEXT<|im_end|>\n
//   llama-3   BOS, <|start_header_id|>ROLE<|end_header_id|>\n\nTEXT<|eot_id|>
//   llama-2   BOS[INST] <<SYS>>\nTEXT\n<</SYS>>\n\nTEXT [/INST] TEXT EOS
//   zephyr    <|ROLE|>\nTEXT EOS\n
//   phi-3     <|ROLE|>\nTEXT<|end|>\n, EOS at the end
//   plain     what the tokenizer puts before a text, "User: TEXT\nAssistant: TEXT" EOS \n
// The answer, which is learned, is an assistant's text and the token that ends it.
// Immutable; render may be called from any thread. The tokenizer must outlive it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/conversation.h"
#include "text/tokenizer.h"

namespace snug::text {

// The built-in template that a user's word means: one of the above, or the one whose markers a
// template file carries; empty for an empty word, the model's own. Throws UserError naming the
// choices.
std::string find_chat_template(std::string_view name);
// Whether the word names a built-in template.
bool is_chat_template_name(std::string_view word);

class ChatTemplate {
 public:
  // `name` as for find_chat_template; empty: the template of the tokenizer's folder is recognised.
  // Throws UserError naming the choices where nothing is recognised, and naming the token where
  // the tokenizer lacks one that the template needs.
  ChatTemplate(std::string_view name, const Tokenizer& tokenizer);

  const std::string& name() const { return name_; }

  // Whether the tokens that the tokenizer puts before a text belong before the parts, too.
  bool takes_special_tokens() const { return name_ == "plain"; }

  // With `for_generation` the parts end where the assistant's next text begins. Throws UserError
  // (without a place) where the messages cannot stand in this order.
  std::vector<Part> render(std::span<const Message> messages, bool for_generation = false) const;

 private:
  using Renderer = std::vector<Part> (ChatTemplate::*)(std::span<const Message>, bool) const;
  std::vector<Part> chatml(std::span<const Message> messages, bool for_generation) const;
  std::vector<Part> llama_3(std::span<const Message> messages, bool for_generation) const;
  std::vector<Part> llama_2(std::span<const Message> messages, bool for_generation) const;
  std::vector<Part> zephyr(std::span<const Message> messages, bool for_generation) const;
  std::vector<Part> phi_3(std::span<const Message> messages, bool for_generation) const;
  std::vector<Part> plain(std::span<const Message> messages, bool for_generation) const;
  int32_t need(std::string_view token) const;
  int32_t need_eos() const;

  const Tokenizer& tokenizer_;
  std::string name_;
  Renderer renderer_ = nullptr;
};

}  // namespace snug::text
