// Templates that are broken, or that mean to do harm: each ends in an error, soon.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "../base/processor_time.h"
#include "base/error.h"
#include "text/chat/jinja/template.h"
#include "text/chat/jinja/values/json_values.h"

namespace snug::text::jinja {
namespace {

std::string error_of(const std::string& source) {
  try {
    const Variables variables{
        {"messages", value_of_json(R"([{"role": "user", "content": "Hi"}])")}};
    Template(source, "t.jinja").render(variables, 0);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(JinjaLimits, HostileTemplatesEndInAnError) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nests too deep"},
      {"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
       "runs too long"},
      {"{% set n = namespace(x='aaaaaaaa') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}"
       "{% endfor %}",
       "too much text"},
      {"{% set n = namespace(x=[1]) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}"
       "{% endfor %}{{ n.x }}",
       "holds too much"},
      {"{% set n = namespace(x=[1], y=[1]) %}{% for i in range(20) %}{% set n.x = [n.x, n.x] %}"
       "{% set n.y = [n.y, n.y] %}{% endfor %}{% for i in range(99) %}{% if n.x == n.y %}"
       "{% endif %}{% endfor %}",
       "runs too long"},
      {"{{ 'a' * 99999999999 }}", "too much text"},
      {"{{ [[0] * 99999] * 99999999 }}", "runs too long"},
      {"{{ range(100001) | length }}", "more than 100000"},
      {"{{ 'a' | center(9999999999) }}", "too much text"},
      {"{{ '%9999999999d' % 1 }}", "too large"},
      {"{{ 'ab' | replace('', 'x' * 100000000) }}", "too much text"},
      {"{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}",
       "nest too deep"},
      {"{% set n = namespace(x=1) %}{% set n.x = n %}{{ n }}", "cannot be printed"},
      {"{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}", "nest deeper"},
      {"{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}", "nest deeper"},
      {"{{ " + repeated("not ", 5000) + "1 }}", "nest deeper"},
      {"{{ " + repeated("- ", 5000) + "1 }}", "nest deeper"},
      {"{{ 1" + repeated(" + 1", 5000) + " }}", "nests deeper"},
      {"{{ x" + repeated(".a", 5000) + " }}", "nests deeper"},
      {"{{ x" + repeated(" | trim", 5000) + " }}", "nests deeper"},
      {"{{ 1" + repeated(" if 1 else 1", 5000) + " }}", "nest"},
      {repeated("{% if 1 %}", 5000), "nest deeper"},
      {std::string(2 << 20, 'a'), "more than the"}};
  for (const auto& [source, expected] : cases) {
    const double begin = testing::processor_seconds();
    const std::string error = error_of(source);
    EXPECT_NE(error.find(expected), std::string::npos)
        << source.substr(0, 80) << ": " << error.substr(0, 200);
    const double seconds = testing::processor_seconds() - begin;
    EXPECT_LT(seconds, 30) << source.substr(0, 80);
  }
}

// Pieces of templates in any order either run or are refused.
TEST(JinjaLimits, RandomTemplatesNeverCrash) {
  const std::vector<std::string> pieces = {"{{",
                                           "}}",
                                           "{%",
                                           "%}",
                                           "{#",
                                           "#}",
                                           "-",
                                           "+",
                                           " if ",
                                           " else ",
                                           " for ",
                                           " in ",
                                           "endif",
                                           "endfor",
                                           " set ",
                                           "=",
                                           "x",
                                           "messages",
                                           "[0]",
                                           ".role",
                                           "['a']",
                                           "(",
                                           ")",
                                           "[",
                                           "]",
                                           "{",
                                           "}",
                                           ",",
                                           ":",
                                           "|",
                                           "trim",
                                           "tojson",
                                           "map('upper')",
                                           "items",
                                           " is ",
                                           "defined",
                                           "not ",
                                           "'a'",
                                           "\"",
                                           "\\",
                                           "1",
                                           "2.5",
                                           "1e9",
                                           "**",
                                           "//",
                                           "%",
                                           "~",
                                           "<",
                                           "==",
                                           " and ",
                                           "loop.index",
                                           "namespace(a=1)",
                                           "macro f(a, b=1)",
                                           "endmacro",
                                           "f(1)",
                                           "call f()",
                                           "endcall",
                                           "generation",
                                           "endgeneration",
                                           "filter upper",
                                           "endfilter",
                                           "raw",
                                           "endraw",
                                           "break",
                                           "\n",
                                           "\r",
                                           "\xC3",
                                           "\xC3\xA9",
                                           "range(3)",
                                           ".split()",
                                           ".format(1)",
                                           "'{}%s'",
                                           "[::-1]",
                                           "caller()",
                                           "with y=1",
                                           "endwith",
                                           "sort",
                                           "batch(2)",
                                           "dictsort",
                                           "sum",
                                           "join(',')",
                                           "\0",
                                           "elif"};
  std::mt19937 random(7);
  int run = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string source = round % 2 == 0 ? "{{ " : "{% for x in messages %}{{ ";
    const size_t length = random() % 12;
    for (size_t i = 0; i < length; ++i) source += pieces[random() % pieces.size()];
    if (round % 3 != 0) source += round % 2 == 0 ? " }}" : " }}{% endfor %}";
    run += error_of(source).empty() ? 1 : 0;
  }
  EXPECT_GT(run, 50);
}

TEST(JinjaLimits, CutTemplatesAreRefusedOrRun) {
  const std::string source =
      "{% macro f(a, b=[1, {'k': 2}]) %}{{ a | default('x') ~ b[0] }}{% endmacro %}\n"
      "{%- for m in messages if m.role is string %}{% set t %}{{ m['content'][:1] }}{% endset %}"
      "{{ '%s' % t }}{% generation %}{{ f(loop.index) }}{% endgeneration %}{% else %}-{% endfor %}";
  EXPECT_EQ(error_of(source), "");
  for (size_t i = 0; i < source.size(); ++i) {
    error_of(source.substr(0, i));
    std::string without = source;
    error_of(without.erase(i, 1));
  }
}

}  // namespace
}  // namespace snug::text::jinja
