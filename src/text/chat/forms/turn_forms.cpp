// Forms that write each turn after a token, or a mark, of its role.
#include "text/chat/forms/forms.h"

namespace snug::text {
namespace {

// Gemma has no role for a system message: the user's first message begins with it.
const char* const kGemma =
    R"({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- for message in messages -%}
{%- if message.role == 'system' and loop.first -%}
{%- set ns.system = message.content + '\n\n' -%}
{%- elif message.role == 'user' -%}
{{- '<start_of_turn>user\n' + ns.system + message.content | trim + '<end_of_turn>\n' -}}
{%- set ns.system = '' -%}
{%- elif message.role == 'assistant' -%}
{{- '<start_of_turn>model\n' -}}
{%- generation -%}{{ message.content | trim + '<end_of_turn>' }}{%- endgeneration -%}
{{- '\n' -}}
{%- else -%}
{{ raise_exception('chat_template gemma has no role ' + message.role + ' in this place') }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%})";

const char* const kCommandR =
    R"({{- bos_token -}}
{%- set tokens = {'system': '<|SYSTEM_TOKEN|>', 'user': '<|USER_TOKEN|>'} -%}
{%- for message in messages -%}
{{- '<|START_OF_TURN_TOKEN|>' -}}
{%- if message.role == 'assistant' -%}
{{- '<|CHATBOT_TOKEN|>' -}}
{%- generation -%}
{{- message.content.strip() + '<|END_OF_TURN_TOKEN|>' -}}
{%- endgeneration -%}
{%- elif message.role in tokens -%}
{{- tokens[message.role] -}}
{{- message.content if message.role == 'system' else message.content.strip() -}}
{{- '<|END_OF_TURN_TOKEN|>' -}}
{%- else -%}
{{ raise_exception('chat_template command-r has no role ' + message.role) }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' -}}
{%- endif -%})";

// An answer that follows results of tools has no token before it. Thoughts are left out.
const char* const kDeepseekV3 =
    R"({%- set ns = namespace(in_results=false) -%}
{{- bos_token -}}
{%- for message in messages if message.role == 'system' -%}
{{- '\n\n' if not loop.first -}}{{- message.content -}}
{%- endfor -%}
{%- for message in messages -%}
{%- if ns.in_results and message.role != 'tool' -%}{{ '<｜tool▁outputs▁end｜>' }}{%- endif -%}
{%- if message.role == 'user' -%}
{{- '<｜User｜>' + message.content -}}
{%- elif message.role == 'assistant' -%}
{{- '<｜Assistant｜>' if not ns.in_results -}}
{%- generation -%}
{{- (message.content or '').split('</think>')[-1] if not message.tool_calls
    else message.content or '' -}}
{%- for call in message.tool_calls or [] -%}
{%- set given = call.function.arguments -%}
{{- '<｜tool▁calls▁begin｜>' if loop.first else '\n' -}}
{{- '<｜tool▁call▁begin｜>' ~ (call.type or 'function') ~ '<｜tool▁sep｜>' ~ call.function.name -}}
{{- '\n```json\n' ~ (given if given is string else given | tojson) ~ '\n```<｜tool▁call▁end｜>' -}}
{{- '<｜tool▁calls▁end｜>' if loop.last -}}
{%- endfor -%}
{{- eos_token -}}
{%- endgeneration -%}
{%- elif message.role == 'tool' -%}
{{- '<｜tool▁outputs▁begin｜>' if not ns.in_results -}}
{{- '<｜tool▁output▁begin｜>' + message.content + '<｜tool▁output▁end｜>' -}}
{%- elif message.role != 'system' -%}
{{ raise_exception('chat_template deepseek-v3 has no role ' + message.role) }}
{%- endif -%}
{%- set ns.in_results = message.role == 'tool' -%}
{%- endfor -%}
{{- '<｜tool▁outputs▁end｜>' if ns.in_results -}}
{%- if add_generation_prompt and not ns.in_results -%}{{ '<｜Assistant｜>' }}{%- endif -%})";

const char* const kZephyr =
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

const char* const kPhi3 =
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

}  // namespace

std::vector<ChatForm> turn_forms() {
  return {{.name = "gemma",
           .aliases = {"gemma-2", "gemma-3"},
           .source = kGemma,
           .tokens = {"<start_of_turn>", "<end_of_turn>"},
           .needs_bos = true},
          {.name = "command-r",
           .aliases = {"cohere"},
           .source = kCommandR,
           .tokens = {"<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|SYSTEM_TOKEN|>",
                      "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>"},
           .needs_bos = true},
          {.name = "deepseek-v3",
           .aliases = {"deepseek-3", "deepseek-v2.5"},
           .source = kDeepseekV3,
           .tokens = {"<｜User｜>", "<｜Assistant｜>"},
           .needs_bos = true,
           .needs_eos = true},
          {.name = "zephyr", .source = kZephyr, .needs_eos = true},
          {.name = "phi-3",
           .aliases = {"phi", "phi-3.5"},
           .source = kPhi3,
           .tokens = {"<|user|>", "<|assistant|>", "<|end|>"},
           .needs_eos = true}};
}

}  // namespace snug::text
