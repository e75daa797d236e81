#include "text/chat/chat_forms.h"

#include <algorithm>
#include <array>

namespace snug::text {
namespace {

constexpr std::array<std::string_view, 2> kChatmlTokens{"<|im_start|>", "<|im_end|>"};
constexpr std::string_view kChatml =
    R"({%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\n' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{ message.content + '<|im_end|>' }}{%- endgeneration -%}
{%- else -%}
{{ message.content + '<|im_end|>' -}}
{%- endif -%}
{{ '\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' -}}{%- endif -%})";

constexpr std::array<std::string_view, 4> kLlama3Tokens{"<|begin_of_text|>", "<|start_header_id|>",
                                                        "<|end_header_id|>", "<|eot_id|>"};
constexpr std::string_view kLlama3 =
    R"({{- '<|begin_of_text|>' -}}
{%- for message in messages -%}
{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{ message.content | trim + '<|eot_id|>' }}{%- endgeneration -%}
{%- else -%}
{{ message.content | trim + '<|eot_id|>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}
{%- endif -%})";

constexpr std::string_view kLlama2 =
    R"({%- set ns = namespace(system='', user_is_next=true) -%}
{%- for message in messages -%}
{%- if message.role == 'system' and loop.first -%}
{%- set ns.system = '<<SYS>>\n' + message.content + '\n<</SYS>>\n\n' -%}
{%- else -%}
{%- if message.role != ('user' if ns.user_is_next else 'assistant') -%}
{{ raise_exception('message ' ~ loop.index ~ ': chat_template llama-2 needs user and assistant in '
    'turn, with the system message first') }}
{%- endif -%}
{%- if ns.user_is_next -%}
{{ bos_token + '[INST] ' + (ns.system + message.content) | trim + ' [/INST]' -}}
{%- set ns.system = '' -%}
{%- else -%}
{%- generation -%}{{ ' ' + message.content | trim + ' ' + eos_token }}{%- endgeneration -%}
{%- endif -%}
{%- set ns.user_is_next = not ns.user_is_next -%}
{%- endif -%}
{%- endfor -%})";

constexpr std::string_view kZephyr =
    R"({%- for message in messages -%}
{{ '<|' + message.role + '|>\n' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{ message.content + eos_token }}{%- endgeneration -%}
{%- else -%}
{{ message.content + eos_token -}}
{%- endif -%}
{{ '\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|assistant|>\n' -}}{%- endif -%})";

constexpr std::array<std::string_view, 3> kPhi3Tokens{"<|user|>", "<|assistant|>", "<|end|>"};
constexpr std::string_view kPhi3 =
    R"({%- for message in messages -%}
{{ '<|' + message.role + '|>\n' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{ message.content + '<|end|>' }}{%- endgeneration -%}
{%- else -%}
{{ message.content + '<|end|>' -}}
{%- endif -%}
{{ '\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|assistant|>\n' -}}
{%- elif messages and messages[-1].role == 'assistant' -%}
{%- generation -%}{{ eos_token }}{%- endgeneration -%}
{%- else -%}
{{ eos_token -}}
{%- endif -%})";

constexpr std::string_view kPlain =
    R"({%- for message in messages -%}
{%- if message.role == 'system' -%}
{{ message.content + '\n' -}}
{%- elif message.role == 'user' -%}
{{ 'User: ' + message.content + '\n' -}}
{%- elif message.role == 'assistant' -%}
{{ 'Assistant: ' -}}
{%- generation -%}{{ message.content + eos_token }}{%- endgeneration -%}
{{ '\n' -}}
{%- else -%}
{{ raise_exception('chat_template plain has no role ' + message.role) }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ 'Assistant:' -}}{%- endif -%})";

constexpr std::array<ChatForm, 6> kForms{{
    {"chatml", kChatml, kChatmlTokens, false, false, false},
    {"llama-3", kLlama3, kLlama3Tokens, false, false, false},
    {"llama-2", kLlama2, {}, true, true, false},
    {"zephyr", kZephyr, {}, false, true, false},
    {"phi-3", kPhi3, kPhi3Tokens, false, true, false},
    {"plain", kPlain, {}, false, true, true},
}};

}  // namespace

const ChatForm* find_chat_form(std::string_view name) {
  const auto* const at = std::find_if(kForms.begin(), kForms.end(),
                                      [&](const ChatForm& form) { return form.name == name; });
  return at == kForms.end() ? nullptr : at;
}

}  // namespace snug::text
