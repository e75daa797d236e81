// What templates write. The expected texts were checked against jinja2 as transformers sets it up
// (scripts/oracles/check_chat_templates compares whole templates).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "text/chat/jinja/template.h"
#include "text/chat/jinja/values/json_values.h"

namespace snug::text::jinja {
namespace {

constexpr const char* kData = R"({
  "name": "Ann", "none": null, "flag": true, "count": 3, "real": 0.5,
  "words": ["pear", "Apple", "fig"], "text": "  a b\n c ",
  "tool": {"name": "add", "items": [1, 2], "get": "own", "inner": {"deep": [10, 20]}},
  "people": [{"name": "Bo", "age": 7}, {"name": "Cy", "age": 5}, {"name": "bo", "age": 9}]})";

Variables variables() {
  Variables result;
  const Value data = value_of_json(kData);
  for (const auto& [key, value] : data.as_dict().entries())
    result.emplace_back(key.as_text(), value);
  return result;
}

std::string render(const std::string& source) {
  return Template(source, "t.jinja").render(variables(), 0).text;
}

std::string error_of(const std::string& source) {
  try {
    render(source);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

struct Case {
  std::string source;
  std::string expected;
};

void expect_all(const std::vector<Case>& cases) {
  for (const auto& [source, expected] : cases) {
    try {
      EXPECT_EQ(render(source), expected) << source;
    } catch (const base::UserError& error) {
      ADD_FAILURE() << source << ": " << error.what();
    }
  }
}

TEST(Jinja, TakesWhiteSpaceAway) {
  expect_all({{"a\n", "a"},
              {"a\n\n", "a\n"},
              {"a\r\nb\rc", "a\nb\nc"},
              {"{% if true %}\nx\n{% endif %}\ny", "x\ny"},
              {"  {% if true %}\n  x\n  {% endif %}\n  y", "  x\n  y"},
              {"a {%- if true -%} \n b \n {%- endif %} c", "ab c"},
              {"  {%+ if true +%}\nx{% endif %}", "  \nx"},
              {"a\n  {{ 1 }}\n", "a\n  1"},
              {"a \n {{- 1 -}} \n b", "a1b"},
              {"a\n  {# note #}\nb", "a\nb"},
              {"a {#- note -#} b", "ab"},
              {"{% raw %}{{ x }}{% endraw %}", "{{ x }}"},
              {"{{ '}}' }}{{ {'a': {}}['a'] }}", "}}{}"}});
}

TEST(Jinja, ComputesAsPythonDoes) {
  expect_all(
      {{"{{ 1 + 2 * 3 ** 2 }} {{ -2 ** 2 }}", "19 4"},
       {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }}", "3 -4 2 3.5"},
       {"{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1e3 }} {{ 1_000 }}", "3.0 0.5 1000.0 1000"},
       {"{{ 1e16 }} {{ 1e15 }} {{ 0.1 + 0.2 }} {{ 0.00001 }}",
        "1e+16 1000000000000000.0 0.30000000000000004 1e-05"},
       {"{{ true + 1 }} {{ 'a' * 3 }} {{ [1] * 2 }}", "2 aaa [1, 1]"},
       {"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ not 1 == 2 }}", "True False True True"},
       {"{{ 'b' in 'abc' }} {{ 4 not in [1] }} {{ 'name' in tool }}", "True True True"},
       {"{{ none or 'x' }} {{ 0 and y }} {{ 1 if none }}|{{ 1 if none else 2 }}", "x 0 |2"},
       {"{{ 'a' ~ 1 ~ none }} {{ 'a' 'b' }} {{ [1] + [2] }}", "a1None ab [1, 2]"},
       {"{{ 'a|b'|upper + 'c' }} {{ 2 is odd or true }}", "A|Bc True"}});
}

TEST(Jinja, PrintsAsPythonDoes) {
  expect_all(
      {{"{{ none }} {{ true }} {{ 1.0 }} {{ missing }}", "None True 1.0 "},
       {"{{ ['a', 'it\\'s', \"q\\\"\", 'b\\n'] }}", "['a', \"it's\", 'q\"', 'b\\n']"},
       {"{{ (1,) }} {{ () }} {{ {'a': none, 1: 2} }}", "(1,) () {'a': None, 1: 2}"},
       {"{{ '\\x41\\u00e9\\t\\q\\101' }}", "A\u00e9\t\\qA"},
       {"{{ tool | tojson }}",
        R"({"name": "add", "items": [1, 2], "get": "own", "inner": {"deep": [10, 20]}})"},
       {"{{ {'b': 1, 'a': '<\u00e9\"/>'} | tojson }}", "{\"b\": 1, \"a\": \"<\u00e9\\\"/>\"}"},
       {"{{ [1, {}, []] | tojson(indent=2) }}", "[\n  1,\n  {},\n  []\n]"},
       {"{{ {'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':')) }}",
        R"({"a":2,"b":1})"},
       {"{{ ['\u00e9'] | tojson(ensure_ascii=true) }}", "[\"\\u00e9\"]"}});
}

TEST(Jinja, FindsAttributesAndItems) {
  expect_all({{"{{ tool.name }} {{ tool['items'] }} {{ tool.get('name') }}", "add [1, 2] add"},
              {"{{ tool.get('x') }} {{ tool.get('x', 1) }} {{ tool['get'] }}", "None 1 own"},
              {"{{ tool.items() | list | length }} {{ tool.inner.deep[-1] }}", "4 20"},
              {"{{ tool.x is defined }} {{ words[9] is defined }} {{ name.x is defined }}",
               "False False False"},
              {"{{ words[1:] }} {{ words[::-1] }} {{ 'h\u00e9llo'[1:3] }} {{ name[-1] }}",
               "['Apple', 'fig'] ['fig', 'Apple', 'pear'] \u00e9l n"},
              {"{{ words.append is defined }} {{ tool['update'] is defined }} {{ words.pop }}",
               "False False "},
              {"{{ words.0 }} {{ none['x'] is defined }} {{ range(5)[1:][0] if false else 2 }}",
               "pear False 2"}});
}

TEST(Jinja, LoopsAndScopes) {
  expect_all(
      {{"{% for w in words %}{{ loop.index }}{{ w[0] }}{{ ',' if not loop.last }}{% endfor %}",
        "1p,2A,3f"},
       {"{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}", "a1"},
       {"{% for i in [] %}x{% else %}none{% endfor %}", "none"},
       {"{% for i in range(9) if i % 2 %}{% if i == 7 %}{% break %}{% endif %}{{ i }}{% endfor %}",
        "135"},
       {"{% for i in range(4) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}",
        "023"},
       {"{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{% endfor %}{{ x }}", "111"},
       {"{% set n = namespace(x=1) %}{% for i in [1, 2] %}{% set n.x = n.x + i %}{% endfor %}"
        "{{ n.x }}",
        "4"},
       {"{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c %} {{ a }} {% endset %}[{{ c }}]", "12[ 1 ]"},
       {"{% for p in people %}{{ loop.previtem.name if loop.previtem }}>{% endfor %}", ">Bo>Cy>"},
       {"{% with y = 2 %}{{ y }}{% endwith %}{{ y is defined }}", "2False"},
       {"{% filter upper | trim %} a {% endfilter %}", "A"}});
}

TEST(Jinja, Macros) {
  expect_all(
      {{"{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(1) }} {{ f(b=3, a=4) }}",
        "1-2 4-3"},
       {"{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, x=2) }}", "(1,){'x': 2}"},
       {"{% macro f() %}<{{ caller(7) }}>{% endmacro %}{% call(x) f() %}in {{ x }}{% endcall %}",
        "<in 7>"},
       {"{% macro fact(n) %}{{ n * fact(n - 1) | int if n > 1 else 1 }}{% endmacro %}"
        "{{ fact(5) }}",
        "120"},
       {"{% macro f(a) %}{{ a is defined }}{% endmacro %}{{ f() }}", "False"},
       {"{% macro f() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ f() }}", "1"}});
}

TEST(Jinja, Filters) {
  expect_all(
      {{"{{ text | trim }}|{{ 'xax' | trim('x') }}", "a b\n c|a"},
       {"{{ words | join(', ') }} {{ people | join('/', attribute='age') }}",
        "pear, Apple, fig 7/5/9"},
       {"{{ words | sort }} {{ words | sort(case_sensitive=true) }}",
        "['Apple', 'fig', 'pear'] ['Apple', 'fig', 'pear']"},
       {"{{ people | sort(attribute='age') | map(attribute='name') | list }}",
        "['Cy', 'Bo', 'bo']"},
       {"{{ people | map(attribute='name') | unique | list }}", "['Bo', 'Cy']"},
       {"{{ people | selectattr('age', 'gt', 5) | map(attribute='age') | sum }}", "16"},
       {"{{ people | rejectattr('missing') | list | length }}", "3"},
       {"{{ [1, 2, 3] | select('odd') | list }} {{ [1, 2] | reject('odd') | list }}", "[1, 3] [2]"},
       {"{{ missing | default('d') }} {{ '' | default('e', true) }} {{ none | d('f') }}",
        "d e None"},
       {"{{ 'a\nb\n\nc' | indent(2) }}|{{ 'a\nb' | indent(1, true) }}", "a\n  b\n\n  c| a\n b"},
       {"{{ 'hello world' | title }} {{ 'aBC' | capitalize }} {{ '\u00c4b' | lower }}",
        "Hello World Abc \u00e4b"},
       {"{{ '42.9' | int }} {{ 'x' | int(7) }} {{ '1.5' | float }} {{ 2.5 | round }}",
        "42 7 1.5 2.0"},
       {"{{ 'a<b' | e }} {{ '<'|safe + '>' }} {{ 'aXbX' | replace('X', '-', 1) }}",
        "a&lt;b <&gt; a-bX"},
       {"{{ '<>' | safe | list }} {{ '<>' | safe | last + '>' }} {{ ('<>' | safe)[0] + '>' }}",
        "['<', '>'] >&gt; <&gt;"},
       {"{{ {'b': 1, 'A': 2} | dictsort }} {{ tool | items | first | first }}",
        "[('A', 2), ('b', 1)] name"},
       {"{{ [1, 2, 3, 4, 5] | batch(2, 0) | list }} {{ [1, 2, 3] | slice(2) | list }}",
        "[[1, 2], [3, 4], [5, 0]] [[1, 2], [3]]"},
       {"{{ [3, 1] | max }} {{ [3, 1] | min }} {{ [1, 2] | last }} {{ 'abc' | reverse }}",
        "3 1 2 cba"},
       {"{{ '%s-%03d' | format('a', 7) }} {{ '%.2f%%' % 1.5 }} {{ '{0}{b:>4}'.format(1, b='x') }}",
        "a-007 1.50% 1   x"}});
}

TEST(Jinja, MethodsOfText) {
  expect_all(
      {{"{{ text.strip() }}|{{ 'a-b-c'.split('-', 1) }}|{{ text.split() }}",
        "a b\n c|['a', 'b-c']|['a', 'b', 'c']"},
       {"{{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.find('c') }} {{ 'aa'.count('a') }}",
        "True 2 2"},
       {"{{ ', '.join(words) }} {{ 'a'.upper() }} {{ 'x=1'.partition('=') }}",
        "pear, Apple, fig A ('x', '=', '1')"},
       {"{{ 'a\nb'.splitlines() }} {{ '7'.zfill(3) }} {{ 'ab'.removeprefix('a') }}",
        "['a', 'b'] 007 b"},
       {"{{ 'a,b'.rsplit(',', 1)[-1] }} {{ 'Ab'.swapcase() }} {{ '12'.isdigit() }}", "b aB True"}});
}

TEST(Jinja, Tests) {
  expect_all(
      {{"{{ name is string }} {{ tool is mapping }} {{ words is iterable }}", "True True True"},
       {"{{ none is none }} {{ count is number }} {{ true is integer }} {{ 1 is integer }}",
        "True True False True"},
       {"{{ missing is undefined }} {{ 3 is divisibleby 3 }} {{ 1 is not in [2] }}",
        "True True True"},
       {"{{ words is sequence }} {{ tool is sequence }} {{ 'a' is lower }}", "True True True"},
       {"{{ missing is iterable }} {{ missing | length }} {{ real is float }}", "True 0 True"}});
}

TEST(Jinja, MarksWhatTheAssistantWrote) {
  const Template marked("a{% generation %}bc{% endgeneration %}d", "t.jinja");
  EXPECT_TRUE(marked.marks_generation());
  const auto rendering = marked.render({}, 0);
  EXPECT_EQ(rendering.text, "abcd");
  ASSERT_EQ(rendering.generated.size(), 1U);
  EXPECT_EQ(rendering.generated[0].begin, 1U);
  EXPECT_EQ(rendering.generated[0].end, 3U);
  EXPECT_FALSE(Template("a", "t.jinja").marks_generation());
}

TEST(Jinja, NamesWhatIsWrongWithItsLine) {
  const std::vector<Case> cases = {
      {"a\n{{ x", "t.jinja:2: chat template: a tag '{{' is not closed"},
      {"{% if x %}", "expected 'endif'"},
      {"\n\n{% include 'x' %}", "t.jinja:3: chat template: the tag 'include' is not supported"},
      {"{{ 1 | wordwrap }}", "the filter 'wordwrap' is not supported"},
      {"{{ 1 is weird }}", "the test 'weird' is not supported"},
      {"{% for x in [1] recursive %}{% endfor %}", "recursive loops are not supported"},
      {"{% break %}", "'break' stands outside of a loop"},
      {"{{ missing.x }}", "'missing' is undefined"},
      {"{{ tool.x.y }}", "the dict has no attribute 'x'"},
      {"{{ missing() }}", "'missing' is undefined"},
      {"{{ 'a' + 1 }}", "'+' is not supported between a str and a int"},
      {"{{ words.append(1) }}", "would change a list"},
      {"{{ tool.__class__ }}", "the attribute '__class__' is not supported"},
      {"{{ raise_exception('no ' + name) }}", "the template refuses the conversation: no Ann"},
      {"{{ raise_exception('no\\0 ' + name) }}",
       "the template refuses the conversation: no\\u0000 Ann"},
      {"{% for x in none %}{% endfor %}", "a NoneType cannot be iterated over"},
      {"{{ 9223372036854775807 + 1 }}", "an integer is beyond 64 bits"},
      {"{{ 1 // 0 }}", "division by zero"},
      {"{{ name.encode() }}", "the method 'encode' is not supported"},
      {"{{ words | tojson(x=1) }}", "'tojson' takes no argument 'x'"},
      {"{{ missing | tojson }}", "tojson cannot write a value of the type Undefined"},
      {"{{ 'stra\u00dfe' | upper }}", "is not supported"},
      {"{% set x.y = 1 %}", "'x' is no namespace"},
      {"{% set n = namespace(_x=1) %}", "the name '_x' in a namespace is not supported"},
      {"{% macro f(a) %}{% endmacro %}{{ f.name }}",
       "the attribute 'name' of a Macro is not supported"},
      {"{% macro f(a) %}{% endmacro %}{{ f['arguments'] is defined }}",
       "the attribute 'arguments' of a Macro is not supported"},
      {"{% macro f() %}{{ caller.arguments }}{% endmacro %}{% call f() %}{% endcall %}",
       "the attribute 'arguments' of a Macro"},
      {"{{ self }}", "the name 'self' is not supported"},
      {"{{ self.title() }}", "the name 'self' is not supported"},
      {"{{ range(3).stop }}", "the attribute 'stop' of a range is not supported"},
      {"{{ tool.items().mapping }}", "the attribute 'mapping' of a dict view is not supported"},
      {"{{ [1] | map(attribute='real') | list }}", "the attribute 'real' of a int"},
      {"{{ (0.5).is_integer() }}", "the attribute 'is_integer' of a float is not supported"},
      {"{{ flag.numerator }}", "the attribute 'numerator' of a bool is not supported"},
      {"{{ ('a' | safe).striptags() }}", "the attribute 'striptags' of a Markup"},
      {"{{ (words | map('upper')).close() }}", "the attribute 'close' of a generator"},
      {"{{ dict.fromkeys(words) }}", "the attribute 'fromkeys' of a function"},
      {"{{ tool.get == tool.get }}", "comparing methods is not supported"},
      {"{{ words is filter }}", "a list cannot be the key of a dictionary"},
      {"{% macro f() %}{% generation %}{% endgeneration %}{% endmacro %}{{ f() }}",
       "'generation' inside of a macro"}};
  for (const auto& [source, expected] : cases)
    EXPECT_NE(error_of(source).find(expected), std::string::npos)
        << source << ": " << error_of(source);
}

// Expected values: jinja2 with Environment(undefined=StrictUndefined, keep_trailing_newline=True).
TEST(Jinja, KeepsLinesAndRefusesWhatIsUndefinedWhereItIsAsked) {
  const TemplateRules rules{.subject = "a line", .trims_lines = false, .is_strict = true};
  const auto rendered = [&](const std::string& source) {
    return Template(source, "t", rules).render({{"d", Value::dict({})}}, 0).text;
  };
  EXPECT_EQ(rendered("a\n{% if true %}\n  {% if true %}b{% endif %}\n{% endif %}\n"),
            "a\n\n  b\n\n");
  EXPECT_EQ(rendered("{{ x is defined }}{{ x | default('d') }}"), "Falsed");
  EXPECT_EQ(rendered("{{ 'a' if false }}{{ ('a' if false) ~ 'b' }}"), "b");
  for (const char* source : {"{{ x }}", "{% for i in x %}{% endfor %}", "{% if x %}{% endif %}",
                             "{{ 'a' ~ x }}", "{{ not x }}", "{{ 1 if x else 2 }}", "{{ d.x }}"}) {
    try {
      rendered(source);
      ADD_FAILURE() << source;
    } catch (const base::UserError& error) {
      EXPECT_NE(std::string(error.what()).find("a line: "), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace snug::text::jinja
