// Forms in words alone, for tokenizers without tokens of their own.
#include "text/chat/forms/forms.h"

namespace snug::text {
namespace {

// Without a system message a conversation begins as a record of the form alpaca does.
const char* const kAlpaca =
    R"({%- set has_system = messages and messages[0].role == 'system' -%}
{{- messages[0].content if has_system else 'Below is an instruction that describes a task. Write a '
    'response that appropriately completes the request.' -}}
{{- '\n\n' -}}
{%- for message in (messages[1:] if has_system else messages) -%}
{%- if message.role == 'user' -%}
{{- '### Instruction:\n' + message.content + '\n\n' -}}
{%- elif message.role == 'assistant' -%}
{{- '### Response:\n' -}}
{%- generation -%}{{ message.content + eos_token }}{%- endgeneration -%}
{{- '\n\n' if not loop.last -}}
{%- else -%}
{{ raise_exception('chat_template alpaca has no role ' + message.role + ' in this place') }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '### Response:\n' }}{%- endif -%})";

const char* const kVicuna =
    R"({%- set has_system = messages and messages[0].role == 'system' -%}
{{- messages[0].content if has_system else 'A chat between a curious user and an artificial '
    'intelligence assistant. The assistant gives helpful, detailed, and polite answers to the '
    'user\'s questions.' -}}
{{- ' ' -}}
{%- for message in (messages[1:] if has_system else messages) -%}
{%- if message.role == 'user' -%}
{{- 'USER: ' + message.content + ' ' -}}
{%- elif message.role == 'assistant' -%}
{{- 'ASSISTANT:' -}}
{%- generation -%}{{ ' ' + message.content + eos_token }}{%- endgeneration -%}
{%- else -%}
{{ raise_exception('chat_template vicuna has no role ' + message.role + ' in this place') }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ 'ASSISTANT:' }}{%- endif -%})";

const char* const kPlain =
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

}  // namespace

std::vector<ChatForm> text_forms() {
  std::vector<ChatForm> forms{{.name = "alpaca", .source = kAlpaca},
                              {.name = "vicuna", .source = kVicuna},
                              {.name = "plain", .source = kPlain}};
  for (ChatForm& form : forms) form.needs_eos = form.takes_tokens_before = true;
  return forms;
}

}  // namespace snug::text
