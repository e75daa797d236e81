// Built-in chat templates, for models whose folder has none. They are written in Jinja and run like
// a folder's own template; {% generation %} marks what is learned. What each writes is what the
// published template of its models writes, except where docs/chat_templates.md says otherwise.
//   chatml             <|im_start|>ROLE\nTEXT<|im_end|>\n
//   qwen-2.5, qwen-3   the same with tools and a system message, or with tools and thoughts
//   phi-4              <|im_start|>ROLE<|im_sep|>TEXT<|im_end|>
//   llama-3            BOS, <|start_header_id|>ROLE<|end_header_id|>\n\nTEXT<|eot_id|>
//   llama-3.1          the same with tools, and dates in the system message
//   llama-2            BOS[INST] <<SYS>>\nTEXT\n<</SYS>>\n\nTEXT [/INST] TEXT EOS
//   mistral-v1, -v3, -v3-tekken, -v7-tekken
//                      BOS, [INST]TEXT[/INST]TEXT EOS, with spaces that differ
//   gemma              BOS, <start_of_turn>ROLE\nTEXT<end_of_turn>\n
//   command-r          BOS, <|START_OF_TURN_TOKEN|><|ROLE_TOKEN|>TEXT<|END_OF_TURN_TOKEN|>
//   deepseek-v3        BOS, <｜User｜>TEXT<｜Assistant｜>TEXT EOS
//   zephyr             <|ROLE|>\nTEXT EOS\n
//   phi-3              <|ROLE|>\nTEXT<|end|>\n, EOS at the end
//   alpaca             the tokenizer's tokens before a text, "### Instruction:\nTEXT\n\n###
//                      Response:\nTEXT" EOS \n\n
//   vicuna             those tokens, "USER: TEXT ASSISTANT: TEXT" EOS
//   plain              those tokens, "User: TEXT\nAssistant: TEXT" EOS \n
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snug::text {

struct ChatForm {
  std::string_view name{};
  std::vector<std::string_view> aliases{};  // names of other tools
  std::string source{};
  std::vector<std::string_view> tokens{};  // tokens that the tokenizer must have
  bool needs_bos = false;
  bool needs_eos = false;
  // Begins with the tokens that the tokenizer puts before a text.
  bool takes_tokens_before = false;
};

// "chatml, qwen-2.5 and plain".
const std::string& chat_form_names();

// Null if no template has this name; case, and the marks between its words and numbers, do not
// matter: llama3, Llama-3 and llama_3 are llama-3.
const ChatForm* find_chat_form(std::string_view name);

}  // namespace snug::text
