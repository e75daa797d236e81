#include <string>
#include <string_view>

#include "text/chat/forms/forms.h"

namespace snug::text {
namespace {

const char* const kChatml =
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

const char* const kPhi4 =
    R"({%- for message in messages -%}
{%- if message.role not in ['system', 'user', 'assistant'] -%}
{{ raise_exception('chat_template phi-4 has no role ' + message.role) }}
{%- endif -%}
{{ '<|im_start|>' + message.role + '<|im_sep|>' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{ message.content + '<|im_end|>' }}{%- endgeneration -%}
{%- else -%}
{{ message.content + '<|im_end|>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant<|im_sep|>' -}}{%- endif -%})";

// What Qwen's models are told of tools, the calls of a turn, and the results in the user's turns.
const char* const kQwenMacros =
    R"({%- macro listed(tools) -%}
{{- '# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are '
    'provided with function signatures within <tools></tools> XML tags:\n<tools>' -}}
{%- for tool in tools -%}{{ '\n' ~ tool | tojson }}{%- endfor -%}
{{- '\n</tools>\n\nFor each function call, return a json object with function name and arguments '
    'within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": '
    '<args-json-object>}\n</tool_call>' -}}
{%- endmacro -%}
{%- macro called(calls, breaks_first) -%}
{%- for call in calls -%}
{%- set function = call.function or call -%}
{%- set given = function.arguments -%}
{{- '\n' if breaks_first or not loop.first -}}
{{- '<tool_call>\n{"name": "' ~ function.name ~ '", "arguments": ' -}}
{{- (given if given is string else given | tojson) ~ '}\n</tool_call>' -}}
{%- endfor -%}
{%- endmacro -%}
{%- macro result(message, before, after) -%}
{%- if not before or before.role != 'tool' -%}{{ '<|im_start|>user' }}{%- endif -%}
{{- '\n<tool_response>\n' + message.content + '\n</tool_response>' -}}
{%- if not after or after.role != 'tool' -%}{{ '<|im_end|>\n' }}{%- endif -%}
{%- endmacro -%}
)";

const char* const kQwen25 =
    R"({%- set has_system = messages and messages[0].role == 'system' -%}
{{- '<|im_start|>system\n' -}}
{{- messages[0].content if has_system else
    'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' -}}
{{- '\n\n' ~ listed(tools) if tools -}}
{{- '<|im_end|>\n' -}}
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
{{- result(message, loop.previtem, loop.nextitem) -}}
{%- elif message.role == 'assistant' -%}
{{- '<|im_start|>assistant\n' -}}
{%- generation -%}
{{- message.content or '' -}}
{{- called(message.tool_calls, message.content) if message.tool_calls -}}
{{- '<|im_end|>' -}}
{%- endgeneration -%}
{{- '\n' -}}
{%- elif not (loop.first and has_system) -%}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%})";

// Of the turns before the user's last question thoughts are left out, and the last answer has them,
// or an empty place for them.
const char* const kQwen3 =
    R"({%- set has_system = messages and messages[0].role == 'system' -%}
{%- if has_system or tools -%}
{{- '<|im_start|>system\n' -}}
{{- messages[0].content if has_system -}}
{{- '\n\n' if has_system and tools -}}
{{- listed(tools) if tools -}}
{{- '<|im_end|>\n' -}}
{%- endif -%}
{%- set ns = namespace(question=-1) -%}
{%- for message in messages -%}
{%- set text = message.content or '' -%}
{%- set is_result = text.startswith('<tool_response>') and text.endswith('</tool_response>') -%}
{%- if message.role == 'user' and not is_result -%}{%- set ns.question = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- if ns.question < 0 -%}{%- set ns.question = messages | length - 1 -%}{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
{{- result(message, loop.previtem, loop.nextitem) -}}
{%- elif message.role == 'assistant' -%}
{%- set ns.text = message.content or '' -%}
{%- set ns.thought = '' -%}
{%- if message.reasoning_content is string -%}
{%- set ns.thought = message.reasoning_content -%}
{%- elif '</think>' in ns.text -%}
{%- set ns.thought = ns.text.split('</think>')[0].split('<think>')[-1] -%}
{%- set ns.text = ns.text.split('</think>')[-1].lstrip('\n') -%}
{%- endif -%}
{%- set thinks = loop.index0 > ns.question and (loop.last or ns.thought) -%}
{{- '<|im_start|>assistant\n' -}}
{%- generation -%}
{{- '<think>\n' ~ ns.thought.strip('\n') ~ '\n</think>\n\n' ~ ns.text.lstrip('\n') if thinks
    else ns.text -}}
{{- called(message.tool_calls, ns.text) if message.tool_calls -}}
{{- '<|im_end|>' -}}
{%- endgeneration -%}
{{- '\n' -}}
{%- elif not (loop.first and has_system) -%}
{{- '<|im_start|>' ~ message.role ~ '\n' ~ (message.content or '') ~ '<|im_end|>\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\n' -}}
{%- if enable_thinking is defined and enable_thinking is false -%}
{{- '<think>\n\n</think>\n\n' -}}
{%- endif -%}
{%- endif -%})";

}  // namespace

std::vector<ChatForm> chatml_forms() {
  const std::vector<std::string_view> tokens{"<|im_start|>", "<|im_end|>"};
  return {
      {.name = "chatml", .source = kChatml, .tokens = tokens},
      {.name = "qwen-2.5",
       .aliases = {"qwen", "qwen-2"},
       .source = std::string(kQwenMacros) + kQwen25,
       .tokens = tokens},
      {.name = "qwen-3", .source = std::string(kQwenMacros) + kQwen3, .tokens = tokens},
      {.name = "phi-4", .source = kPhi4, .tokens = {"<|im_start|>", "<|im_sep|>", "<|im_end|>"}}};
}

}  // namespace snug::text
