// Mistral's forms differ in the spaces around their tokens and in where the system message stands:
// v1 has it in the user's first message, v3 (also of the tokenizers v2) in the last one, v7 in
// tokens of its own.
#include <string>
#include <string_view>

#include "text/chat/forms/forms.h"

namespace snug::text {
namespace {

const char* const kMistralV1 =
    R"({{- bos_token -}}
{%- set ns = namespace(system='', user_is_next=true) -%}
{%- for message in messages -%}
{%- if message.role == 'system' and loop.first -%}
{%- set ns.system = message.content + '\n\n' -%}
{%- else -%}
{%- if message.role != ('user' if ns.user_is_next else 'assistant') -%}
{{ raise_exception('message ' ~ loop.index ~ ': chat_template mistral-v1 needs user and assistant '
    'in turn, with the system message first') }}
{%- endif -%}
{%- if ns.user_is_next -%}
{{- ' [INST] ' + ns.system + message.content + ' [/INST]' -}}
{%- set ns.system = '' -%}
{%- else -%}
{%- generation -%}{{ ' ' + message.content + eos_token }}{%- endgeneration -%}
{%- endif -%}
{%- set ns.user_is_next = not ns.user_is_next -%}
{%- endif -%}
{%- endfor -%})";

// After a variable `space`, which is one or none. Tools and the system message stand in the user's
// last question, where the model reads them when it answers.
const char* const kMistralV3 =
    R"({{- bos_token -}}
{%- set ns = namespace(system='', question=-1) -%}
{%- for message in messages -%}
{%- if message.role == 'user' -%}{%- set ns.question = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for message in messages -%}
{%- if message.role == 'system' and loop.first -%}
{%- set ns.system = message.content + '\n\n' -%}
{%- elif message.role == 'user' -%}
{%- set is_last = loop.index0 == ns.question -%}
{%- if tools and is_last -%}
{{- '[AVAILABLE_TOOLS]' + space + '[' -}}
{%- for tool in tools -%}
{{- '{"type": "function", "function": {' -}}
{%- for key, value in tool.function.items() if key != 'return' -%}
{{- '"' ~ key ~ '": ' ~ ('"' ~ value ~ '"' if value is string else value | tojson) -}}
{{- ', ' if not loop.last -}}
{%- endfor -%}
{{- '}}' ~ (']' if loop.last else ', ') -}}
{%- endfor -%}
{{- '[/AVAILABLE_TOOLS]' -}}
{%- endif -%}
{{- '[INST]' + space + (ns.system if is_last else '') + message.content + '[/INST]' -}}
{%- elif message.role == 'assistant' and message.tool_calls -%}
{%- generation -%}
{{- '[TOOL_CALLS]' + space + '[' -}}
{%- for call in message.tool_calls -%}
{%- if (call.id or '') | length != 9 -%}
{{ raise_exception('a call has an id of 9 letters and digits in Mistral\'s conversations') }}
{%- endif -%}
{{- (call.function | tojson)[:-1] ~ ', "id": "' ~ call.id ~ '"}' -}}
{{- ', ' if not loop.last -}}
{%- endfor -%}
{{- ']' + eos_token -}}
{%- endgeneration -%}
{%- elif message.role == 'assistant' -%}
{%- generation -%}
{{- space + (message.content | trim if space else message.content) + eos_token -}}
{%- endgeneration -%}
{%- elif message.role in ['tool', 'tool_results'] -%}
{%- if (message.tool_call_id or '') | length != 9 -%}
{{ raise_exception('the result of a call has its id of 9 letters and digits as tool_call_id') }}
{%- endif -%}
{{- '[TOOL_RESULTS]' + space + '{"content": ' ~ message.content ~ ', "call_id": "' -}}
{{- message.tool_call_id ~ '"}[/TOOL_RESULTS]' -}}
{%- else -%}
{{ raise_exception('chat_template mistral-v3 has no role ' + message.role + ' in this place') }}
{%- endif -%}
{%- endfor -%})";

const char* const kMistralV7 =
    R"({{- bos_token -}}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{{- '[SYSTEM_PROMPT]' + message.content + '[/SYSTEM_PROMPT]' -}}
{%- elif message.role == 'user' -%}
{{- '[INST]' + message.content + '[/INST]' -}}
{%- elif message.role == 'assistant' -%}
{%- generation -%}{{ message.content + eos_token }}{%- endgeneration -%}
{%- else -%}
{{ raise_exception('chat_template mistral-v7-tekken has no role ' + message.role) }}
{%- endif -%}
{%- endfor -%})";

}  // namespace

std::vector<ChatForm> mistral_forms() {
  const std::vector<std::string_view> v3_tokens{"[INST]", "[/INST]"};
  return {{.name = "mistral-v1", .source = kMistralV1, .needs_bos = true, .needs_eos = true},
          {.name = "mistral-v3",
           .aliases = {"mistral", "mistral-v2", "mistral-v2v3"},
           .source = std::string("{%- set space = ' ' -%}\n") + kMistralV3,
           .tokens = v3_tokens,
           .needs_bos = true,
           .needs_eos = true},
          {.name = "mistral-v3-tekken",
           .aliases = {"mistral-nemo"},
           .source = std::string("{%- set space = '' -%}\n") + kMistralV3,
           .tokens = v3_tokens,
           .needs_bos = true,
           .needs_eos = true},
          {.name = "mistral-v7-tekken",
           .aliases = {"mistral-small"},
           .source = kMistralV7,
           .tokens = {"[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"},
           .needs_bos = true,
           .needs_eos = true}};
}

}  // namespace snug::text
