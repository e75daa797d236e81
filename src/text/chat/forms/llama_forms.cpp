#include "text/chat/forms/forms.h"

#include <string_view>

namespace snug::text {
namespace {

const char* const kLlama2 =
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

const char* const kLlama3 =
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

// Tools stand in the user's first message; a turn has one call at most.
const char* const kLlama31 =
    R"({%- macro header(role) -%}{{ '<|start_header_id|>' + role + '<|end_header_id|>\n\n' }}
{%- endmacro -%}
{%- set has_system = messages and messages[0].role == 'system' -%}
{{- '<|begin_of_text|>' ~ header('system') -}}
{{- 'Environment: ipython\n' if tools -}}
{{- 'Cutting Knowledge Date: December 2023\nToday Date: ' -}}
{{- (date_string if date_string is defined else '26 Jul 2024') ~ '\n\n' -}}
{{- messages[0].content | trim if has_system -}}
{{- '<|eot_id|>' -}}
{%- for message in (messages[1:] if has_system else messages) -%}
{%- if message.role == 'assistant' -%}
{{- header('assistant') -}}
{%- if message.tool_calls -%}
{%- if message.tool_calls | length > 1 -%}
{{ raise_exception('chat_template llama-3.1 writes one call in a turn, and this one has several') }}
{%- endif -%}
{%- set call = message.tool_calls[0].function -%}
{%- generation -%}
{{- '{"name": "' ~ call.name ~ '", "parameters": ' ~ call.arguments | tojson ~ '}<|eot_id|>' -}}
{%- endgeneration -%}
{%- else -%}
{%- generation -%}{{ message.content | trim + '<|eot_id|>' }}{%- endgeneration -%}
{%- endif -%}
{%- elif message.role in ['tool', 'ipython'] -%}
{{- header('ipython') ~ message.content | tojson ~ '<|eot_id|>' -}}
{%- else -%}
{{- header(message.role) -}}
{%- if tools and loop.first -%}
{{- 'Given the following functions, please respond with a JSON for a function call with its proper '
    'arguments that best answers the given prompt.\n\nRespond in the format {"name": function name, '
    '"parameters": dictionary of argument name and its value}.Do not use variables.\n\n' -}}
{%- for tool in tools -%}{{ tool | tojson(indent=4) ~ '\n\n' }}{%- endfor -%}
{%- endif -%}
{{- message.content | trim + '<|eot_id|>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ header('assistant') }}{%- endif -%})";

}  // namespace

std::vector<ChatForm> llama_forms() {
  const std::vector<std::string_view> tokens{"<|begin_of_text|>", "<|start_header_id|>",
                                             "<|end_header_id|>", "<|eot_id|>"};
  return {{.name = "llama-2", .source = kLlama2, .needs_bos = true, .needs_eos = true},
          {.name = "llama-3", .source = kLlama3, .tokens = tokens},
          {.name = "llama-3.1", .aliases = {"llama-3.3"}, .source = kLlama31, .tokens = tokens}};
}

}  // namespace snug::text
