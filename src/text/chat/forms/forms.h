// The built-in chat templates by family (chat_forms.h), each list in the order of its table there.
#pragma once

#include <vector>

#include "text/chat/chat_forms.h"

namespace snug::text {

std::vector<ChatForm> chatml_forms();  // chatml, qwen-2.5, qwen-3, phi-4
std::vector<ChatForm> llama_forms();   // llama-2, llama-3, llama-3.1
std::vector<ChatForm>
mistral_forms();                     // mistral-v1, mistral-v3, mistral-v3-tekken, mistral-v7-tekken
std::vector<ChatForm> turn_forms();  // gemma, command-r, deepseek-v3, zephyr, phi-3
std::vector<ChatForm> text_forms();  // alpaca, vicuna, plain

}  // namespace snug::text
