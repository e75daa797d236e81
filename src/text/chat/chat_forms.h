// Built-in chat templates, for models whose folder has none. They are written in Jinja and run like
// a folder's own template; {% generation %} marks what is learned.
//   chatml    <|im_start|>ROLE\nTEXT<|im_end|>\n
//   llama-3   BOS, <|start_header_id|>ROLE<|end_header_id|>\n\nTEXT<|eot_id|>
//   llama-2   BOS[INST] <<SYS>>\nTEXT\n<</SYS>>\n\nTEXT [/INST] TEXT EOS
//   zephyr    <|ROLE|>\nTEXT EOS\n
//   phi-3     <|ROLE|>\nTEXT<|end|>\n, EOS at the end
//   plain     the tokenizer's tokens before a text, "User: TEXT\nAssistant: TEXT" EOS \n
#pragma once

#include <span>
#include <string_view>

namespace snug::text {

struct ChatForm {
  std::string_view name;
  std::string_view source;
  std::span<const std::string_view> tokens;  // tokens that the tokenizer must have
  bool needs_bos = false;
  bool needs_eos = false;
  // Begins with the tokens that the tokenizer puts before a text.
  bool takes_tokens_before = false;
};

inline constexpr std::string_view kChatForms = "chatml, llama-3, llama-2, zephyr, phi-3 and plain";

// Null if no template has this name.
const ChatForm* find_chat_form(std::string_view name);

}  // namespace snug::text
