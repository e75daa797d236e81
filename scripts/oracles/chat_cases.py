"""Conversations and templates of our own for check_chat_templates: what users have in their data, and what templates do."""

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": 'Current weather of a place, in "metric" units <SI>.',
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "Town & country"},
                "days": {"type": "integer", "description": "How many", "default": 1, "minimum": 1, "maximum": 14},
                "units": {"type": "string", "enum": ["metric", "imperial"], "description": "Of the answer"},
                "points": {"type": "array", "items": {"type": "number"}, "description": "Hours"},
                "limits": {"type": "object", "properties": {"low": {"type": "number"}}, "description": "Bounds"},
            },
            "required": ["place"],
        },
    },
}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds.",
        "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]},
        "return": {"type": "number", "description": "The sum"},
    },
}


def say(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, id="call12345"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def conversations():
    """(name, record): fields of a record as apply_chat_template takes them."""
    one = [say("user", "Hi"), say("assistant", "Hello!")]
    several = [say("user", "One?"), say("assistant", "1"), say("user", "Two?"), say("assistant", "2"), say("user", "Three?"), say("assistant", "3")]
    system = [say("system", "Be brief.")]
    thought = [
        say("user", "2+2?"),
        say("assistant", "4", reasoning_content="Two and two\nmake four."),
        say("user", "And 3?"),
        say("assistant", "7", reasoning_content="Four and three."),
    ]
    by_object = [
        say("user", "Weather in Köln?"),
        {"role": "assistant", "content": "", "tool_calls": [call("get_weather", {"place": "Köln", "days": 2, "points": [1.0, 2.5e-7, 1e22]})]},
        say("tool", '{"sky": "grey"}', tool_call_id="call12345", name="get_weather"),
        say("assistant", "Grey."),
    ]
    by_text = [
        say("user", "Add."),
        {"role": "assistant", "content": None, "tool_calls": [call("add", '{"a": 1, "b": 2}', "add123456")]},
        say("tool", "3", tool_call_id="add123456", name="add"),
        say("assistant", "It is 3."),
        say("user", "Thanks"),
        say("assistant", "Welcome"),
    ]
    two_calls = [
        say("user", "Both?"),
        {"role": "assistant", "content": "Wait.", "tool_calls": [call("add", {"a": 1, "b": None}, "aaaaaaaaa"), call("get_weather", {"place": "Oslo"}, "bbbbbbbbb")]},
        say("tool", "3", tool_call_id="aaaaaaaaa"),
        say("tool", "snow", tool_call_id="bbbbbbbbb"),
        say("assistant", "3 and snow."),
    ]
    return [
        ("one turn", {"messages": one}),
        ("several turns", {"messages": several}),
        ("system and one turn", {"messages": system + one}),
        ("system and several turns", {"messages": system + several}),
        ("empty system", {"messages": [say("system", "")] + one}),
        ("spaces around", {"messages": [say("user", "  a\n"), say("assistant", "\n b \n\n"), say("user", "\tc"), say("assistant", " d")]}),
        ("unicode", {"messages": [say("user", "Grüße, 你好 👩‍🚀 \u00a0\u2028é"), say("assistant", "e\u0301 Ω ½ שלום")]}),
        ("quotes and markup", {"messages": [say("user", "<b>\"it's\" & 'so'</b> \\n {{ x }} {% y %}"), say("assistant", "`{\"a\": [1, 2]}`\\")]}),
        ("same texts", {"messages": [say("user", "yes"), say("assistant", "yes"), say("user", "yes"), say("assistant", "yes")]}),
        ("thoughts in a field", {"messages": thought}),
        ("thoughts in the text", {"messages": [say("user", "2?"), say("assistant", "<think>\nhm\n</think>\n\nTwo"), say("user", "3?"), say("assistant", "<think>so</think>Three")]}),
        ("tools that are not used", {"messages": several, "tools": [WEATHER, ADD]}),
        ("call with an object", {"messages": by_object, "tools": [WEATHER]}),
        ("call with a text", {"messages": by_text, "tools": [ADD, WEATHER]}),
        ("two calls", {"messages": two_calls, "tools": [WEATHER, ADD]}),
        ("calls without tools", {"messages": by_text}),
        ("system, tools and calls", {"messages": system + by_object, "tools": [WEATHER]}),
        ("user without content", {"messages": [say("user", None)] + one}),
        ("user and system without content", {"messages": [say("system", None), say("user", None), say("assistant", "Yes?"), say("user", "c"), say("assistant", "d")]}),
        ("two users in turn", {"messages": [say("user", "a"), say("user", "b"), say("assistant", "c")]}),
        ("two assistants in turn", {"messages": [say("user", "a"), say("assistant", "b"), say("assistant", "c"), say("user", "d"), say("assistant", "e")]}),
        ("system in the middle", {"messages": [say("user", "a"), say("assistant", "b"), say("system", "Now in rhyme."), say("user", "c"), say("assistant", "d")]}),
        ("system and a question", {"messages": system + several[:-1]}),
        ("ends with the user", {"messages": [say("user", "a"), say("assistant", "b"), say("user", "c")]}),
        ("begins with the assistant", {"messages": [say("assistant", "Hi"), say("user", "a"), say("assistant", "b")]}),
        ("variables", {"messages": several, "chat_template_kwargs": {"enable_thinking": False, "date_string": "1 Jan 2025"}}),
        ("variables of one template", {"messages": several, "chat_template_kwargs": {"functions": "[]", "datetime": "today", "builtin_tools": ["brave_search"]}}),
        ("tools without lists", {"messages": system + several, "tools": [ADD]}),
        ("call of tools without lists", {"messages": by_text[:4], "tools": [ADD]}),
        ("parts", {"messages": [say("user", [{"type": "text", "text": "part"}, {"type": "text", "text": "two"}]), say("assistant", "ok")]}),
        ("numbers", {"messages": [say("user", "n", score=0.1, rank=-3, flags=[True, None, 1e-5, 12345678901234567]), say("assistant", "ok")]}),
    ]


CALCULATE = {
    "type": "function",
    "function": {
        "name": "calculate",
        "description": "Computes a term.",
        "parameters": {"type": "object", "properties": {"term": {"type": "string", "description": "e.g. 1+1"}}, "required": ["term"]},
    },
}
# Some templates render nothing without these: fields that their conversations are given where they have none, by a word in the name.
NEEDED = {
    "Hermes": {"tools": [ADD]},
    "c4ai-command-r-plus": {"tools": [CALCULATE]},
    "firefunction": {"chat_template_kwargs": {"functions": "[]", "datetime": "2025-01-01"}},
}

HEADER = "{{ '<|im_start|>' + m.role + '\\n' }}"

# Templates of our own: the constructs that published ones use, in other words. Each is compared in text, ids and mask.
TEMPLATES = {
    "marked": "{%- for m in messages %}\n" + HEADER + "{%- if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{{ '\\n' }}"
    "{%- else %}{{ m.content ~ '<|im_end|>\\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "marked inside of text": "{% for m in messages %}{% if m.role == 'assistant' %}Answer:{% generation %} {{ m.content }}{% endgeneration %} (end){% else %}"
    "[{{ m.role }}] {{ m.content }}\n{% endif %}{% endfor %}{% if add_generation_prompt %}Answer:{% endif %}",
    "history without thoughts": """{%- set ns = namespace(last=-1) -%}
{%- for m in messages[::-1] -%}
  {%- set index = (messages | length - 1) - loop.index0 -%}
  {%- if ns.last < 0 and m.role == 'user' and m.content is string -%}{%- set ns.last = index -%}{%- endif -%}
{%- endfor -%}
{%- for m in messages -%}
  {%- set text = m.content if m.content is string else '' -%}
  {{- '<|im_start|>' ~ m.role ~ '\\n' -}}
  {%- if m.role == 'assistant' -%}
    {%- set thought = '' -%}
    {%- if m.reasoning_content is string -%}{%- set thought = m.reasoning_content -%}
    {%- elif '</think>' in text -%}
      {%- set thought = text.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') -%}
      {%- set text = text.split('</think>')[-1].lstrip('\\n') -%}
    {%- endif -%}
    {%- if loop.index0 > ns.last -%}{{ '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' }}{%- endif -%}
    {{- text -}}
    {%- for call in m.tool_calls -%}{{ '\\n<call>' + call.function.name + ' ' }}
      {%- if call.function.arguments is string -%}{{ call.function.arguments }}{%- else -%}{{ call.function.arguments | tojson }}{%- endif -%}
    {%- endfor -%}
  {%- else -%}{{ text }}{%- endif -%}
  {{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- if enable_thinking is defined and not enable_thinking -%}{{ '<think>\\n\\n</think>\\n\\n' }}{%- endif -%}{%- endif -%}""",
    "filters": """{%- for m in messages %}
{{ loop.index }}/{{ loop.length }} {{ loop.revindex0 }} {{ loop.cycle('odd', 'even') }} {{ loop.changed(m.role) }}
{{ m.role | upper }} {{ m.role | capitalize }} {{ m.role | title }} {{ m | length }} {{ m | tojson }} {{ m.keys() | list }}
{{ m | dictsort | list | length }} {{ m.items() | list | first | join('=') }}
{%- if m.content is string %}
{{ m.content | trim | length }} {{ m.content | replace('a', 'b') | indent(2, true) }} {{ m.content | truncate(5) }} {{ m.content[::-1] }} {{ m.content[1:-1] }}
{{ m.content.split() }} {{ m.content.splitlines() }} {{ m.content | e }} {{ m.content | list | unique | list }} {{ m.content.strip() | center(9) }}|
{{ '%s %d %5.2f' % (m.content, loop.index, 1.5) }} {{ '{} {0!r}'.replace('{} ', '').format(m.content) }} {{ '{:>6}|{:^7}|{:<3}'.format(loop.index, m.role, 'a') }}
{%- endif %}
{%- endfor %}
{{ range(3) | list }} {{ [3, 1, 2] | sort }} {{ [1, 2.0, true] | sum }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 1 / 3 }} {{ 1e16 }} {{ 0.1 + 0.2 }} {{ 10 ** -5 }}
{{ {'a': 1, 'b': [none, true, 1.0, 'x\\'y']} }} {{ (1,) }} {{ 'x' * 3 }} {{ [1] + [2] }} {{ 1 < 2 < 3 }} {{ 'a' in 'abc' }} {{ 2.5 | round }} {{ 2.675 | round(2) }} {{ '42' | int + 1 }} {{ 'x' | int(7) }}
{{ messages | map(attribute='role') | join(',') }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('tool_calls', 'defined') | map(attribute='role') | list }}
{{ [0, 1, none, ''] | select | list }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A'] | map('lower') | list }} {{ [1, 2, 3, 4, 5] | batch(2, 0) | list }} {{ missing | default('d') }} {{ '' | default('e', true) }}
{% set x %}  block {{ 1 + 1 }} {% endset %}[{{ x | trim }}] {% filter upper %}loud{% endfilter %} {% with y = 5 %}{{ y }}{% endwith %} {{ y is defined }}
{% raw %}{{ not run }}{% endraw %}
{% for i in range(9) if i % 2 %}{% if i == 5 %}{% continue %}{% elif i == 7 %}{% break %}{% endif %}{{ i }}{% else %}never{% endfor %}{% for i in [] %}{% else %}empty{% endfor %}
{% macro box(text, mark='*', times=2) %}{{ mark * times }}{{ text }}{{ caller() if caller else '' }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ box('a') }} {{ box('b', times=1, more=3) }} {{ box('c', '-', 1, 4) }} {% call box('d') %}inside{% endcall %}
    {% if true %}
  indented
    {% endif %}
 kept {%- if true -%}   joined   {%- endif +%}
{{ "it's" }} {{ 'tab\\tnew\\x41\\u00e9\\q' }} {{ none }} {{ undefined_name }} {{ 5 is odd }} {{ 'A' is upper }} {{ messages is iterable }} {{ messages[0] is mapping }} {{ 1 is number }}
""",
}
