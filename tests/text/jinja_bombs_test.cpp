// What a template promises (docs/chat_templates.md): each rendering ends soon, in bounded memory.
// With SNUG_BOMBS so many random templates are run, and all of the others.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "jinja_bombs.h"
#include "text/chat/jinja/limits.h"
#include "text/chat/jinja/template.h"
#include "text/chat/jinja/values/json_values.h"

namespace {

// Bytes that are allocated, by this binary's one thread.
int64_t held_bytes = 0;
int64_t most_held_bytes = 0;

void* counted(std::size_t size) {
  void* const block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  held_bytes += static_cast<int64_t>(::malloc_usable_size(block));
  most_held_bytes = std::max(most_held_bytes, held_bytes);
  return block;
}

void release(void* block) {
  held_bytes -= static_cast<int64_t>(::malloc_usable_size(block));
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* block) noexcept { release(block); }
void operator delete[](void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete[](void* block, std::size_t) noexcept { release(block); }

namespace snug::text::jinja {
namespace {

struct Cost {
  double seconds = 0;  // of the processor
  int64_t bytes = 0;
  std::string error{};
};

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Cost cost_of(const std::string& source) {
  static const Variables kVariables{
      {"messages", value_of_json(R"([{"role": "user", "content": "Hi"}, {"role": "b"}])")}};
  Cost cost;
  const int64_t held = held_bytes;
  most_held_bytes = held;
  const double begin = processor_seconds();
  try {
    Template(source, "t.jinja").render(kVariables, 0);
  } catch (const base::UserError& error) {
    cost.error = error.what();
  }
  cost.seconds = processor_seconds() - begin;
  cost.bytes = most_held_bytes - held;
  return cost;
}

// What a rendering may take, and a short source takes.
constexpr int64_t kMostBytes = kMaxBytes + (int64_t{16} << 20);
// Under a second each; the clock ends what a slow machine or a sanitizer makes longer.
#ifdef __SANITIZE_ADDRESS__
constexpr double kMostSeconds = 2.0 * kMaxSeconds;
#else
constexpr double kMostSeconds = 3;
#endif

void check(const Cost& cost, std::string_view source, int64_t most_bytes = kMostBytes) {
  EXPECT_LT(cost.seconds, kMostSeconds) << source;
  EXPECT_LT(cost.bytes, most_bytes) << source;
}

std::optional<int> wanted_bombs() {
  const char* const wanted = std::getenv("SNUG_BOMBS");
  return wanted == nullptr ? std::nullopt : std::optional(std::atoi(wanted));
}

TEST(JinjaBombs, RandomOnesEndSoonInBoundedMemory) {
  const int count = wanted_bombs().value_or(60);
  Cost most;
  double seconds = 0;
  int refused = 0;
  for (int i = 0; i < count && !HasFailure(); ++i) {
    const std::string source = BombMaker(static_cast<uint32_t>(i)).next();
    const Cost cost = cost_of(source);
    check(cost, source);
    seconds += cost.seconds;
    refused += cost.error.empty() ? 0 : 1;
    most.bytes = std::max(most.bytes, cost.bytes);
    if (cost.seconds > most.seconds) most.seconds = cost.seconds, most.error = source;
  }
  RecordProperty("templates", count);
  std::printf("%d templates, %d refused, %.2f s; at most %.2f s and %.0f MiB; the longest: %s\n",
              count, refused, seconds, most.seconds, static_cast<double>(most.bytes) / 1048576.0,
              most.error.substr(0, 500).c_str());
}

// Each was found to take minutes or all memory.
TEST(JinjaBombs, KnownOnesEndSoonInBoundedMemory) {
  const std::string many = "{% for i in range(100000) %}";
  const std::string long_texts = "{% set a = 'a' * 1000000 %}{% set b = 'a' * 500000 ~ 'b' %}";
  const std::string lists = "{% set l = range(100000) | list %}";
  const std::string sources[] = {
      "{{ 'a'.ljust(9223372036854775807) }}",
      "{{ 'a'.center(9223372036854775807) }}",
      "{{ 'a'.rjust(9223372036854775807) }}",
      "{{ '-a'.zfill(9223372036854775807) }}",
      "{{ '\\U0001f600' | center(9223372036854775807) }}",
      "{{ 'a'.ljust(-9223372036854775807 - 1) ~ 'a'.zfill(-9223372036854775807 - 1) }}",
      "{{ 'ab' | truncate(9223372036854775807) }}",
      "{{ 'ab' * 9223372036854775807 }}",
      "{{ [1] * 9223372036854775807 }}",
      long_texts + many + "{{ b in a }}{% endfor %}",
      long_texts + many + "{{ a.find(b) }}{{ a.rfind(b) }}{% endfor %}",
      long_texts + many + "{{ a.count(b) }}{{ a.split(b) | length }}{% endfor %}",
      long_texts + many + "{{ a.rsplit(b) | length }}{{ a.rpartition(b) | length }}{% endfor %}",
      long_texts + many + "{{ a == b ~ '' }}{{ a < b }}{% endfor %}",
      long_texts + many + "{{ a[500000] }}{{ a[-1] }}{% endfor %}",
      long_texts + many + "{{ a | last }}{{ a | first }}{{ a | length }}{% endfor %}",
      long_texts + many + "{{ a.startswith(b, 5, 900000) }}{% endfor %}",
      long_texts + "{{ a.strip(b * 2) }}{{ ('b' * 1000000 ~ a).strip('c' * 1000000 ~ 'b') }}",
      long_texts + many + "{% if a.islower() %}{% endif %}{% endfor %}",
      long_texts + many + "{% if a | lower == a %}{% endif %}{% endfor %}",
      long_texts + many + "{% set x = a | int %}{% set x = a | float %}{% endfor %}",
      long_texts + many + "{% set x = {}[a] %}{% endfor %}",
      long_texts + many + "{% set x = {a: 1}[a] %}{% endfor %}",
      long_texts + many + "{% set x = [1][a] is defined %}{% endfor %}",
      long_texts + "{{ ('{0:.1}' * 100000).format(a) }}",
      long_texts + "{{ ('%.1s' * 100000) % ([a] | list * 100000) }}",
      lists + many + "{{ l.count(7) }}{% endfor %}",
      lists + many + "{{ l.index(99999) }}{% endfor %}",
      lists + many + "{{ l | sum }}{% endfor %}",
      lists + many + "{{ l | last }}{{ l | first }}{% endfor %}",
      lists + many + "{{ l | max }}{% endfor %}",
      lists + many + "{{ 99999 in l }}{% endfor %}",
      lists + many + "{% set x = l | map('string') %}{% endfor %}",
      lists + "{{ l | map('list') | list }}",
      lists + "{% set d = dict(a=l) %}" + many + "{% set x = d == d %}{% endfor %}",
      "{% set n = namespace(x=[[1], [2]]) %}{% for i in range(90) %}{% set n.x = [n.x] %}"
      "{% endfor %}{{ n.x < n.x }}{{ n.x <= [n.x] }}",
      "{% set n = namespace(x='a' * 10000000) %}{% for i in range(99) %}{% set n.x = [n.x] %}"
      "{% endfor %}{{ n.x }}",
      "{{ ['a'] | map('map'" +
          [] {
            std::string maps;
            for (int i = 0; i < 50000; ++i) maps += ", 'map'";
            return maps;
          }() +
          ") | list }}",
      "{{ [[[1]]] | tojson(indent='x' * 100000000) }}",
      many + "{% generation %}a{% endgeneration %}{% endfor %}",
      many + "{% macro f() %}{% endmacro %}{% set x = f %}{% set y = 1 %}{% endfor %}",
      many + "{{ ''.upper is callable }}{% set x = 'a'.upper %}{% endfor %}",
      many + "{% set x = strftime_now('%c' * 10000) %}{% endfor %}",
      many + "{% set x = 1e308 | round(300) %}{% endfor %}",
      "{% set t = '%.999f' * 100000 %}{{ t % ([1e308] * 100000) }}",
      "{{ ('%.999f' * 10000).format() }}{{ ('%.999f,' * 10000) % 1.5 }}",
  };
  const size_t stride = wanted_bombs() ? 1 : 5;  // each takes up to a second
  size_t number = 0;
  for (const std::string& source : sources) {
    if (number++ % stride != 0 && source.starts_with("{% ")) continue;
    check(cost_of(source), source.substr(0, 200));
  }
}

// What published templates do to each message, on as much as a record may hold (2 MiB), in one
// message or in many.
TEST(JinjaBombs, TheLongestConversationsAreFarBelowTheBounds) {
  const std::string source =
      "{% macro show(m) %}<|{{ m.role }}|>{{ m.content | trim }}<|end|>{% endmacro %}"
      "{% set n = namespace(last='', system=false) %}{% for m in messages %}"
      "{% if m.role == 'system' %}{% set n.system = true %}{% endif %}"
      "{% if '</think>' in m.content %}{{ m.content.split('</think>')[-1].lstrip('\n') }}{% endif "
      "%}"
      "{% if m.content.startswith('x') and m.content.endswith('y') %}-{% endif %}"
      "{% if m.content | lower == 'a' or m.content is string %}{{ show(m) }}{% endif %}"
      "{{ {'role': m.role, 'content': m.content.replace('\n\n', '\n')} | tojson }}"
      "{% set n.last = m.content %}{% for line in m.content.split('\n') %}{{ line | length }}"
      "{% endfor %}{% endfor %}{{ n.last | upper | length }}";
  for (const char* line : {"Some words of a line, as people write it.\n",
                           "\u05e9\u05dc\u05d5\u05dd \u4f60\u597d \u0417\u0434\u0440\u0430.\n"})
    for (const size_t count : {size_t{1}, size_t{40}, size_t{2000}}) {
      std::string content;
      while (content.size() < (size_t{2} << 20) / count) content += line;
      List messages;
      for (size_t i = 0; i < count; ++i) {
        Dict message;
        message.set(Value::text("role"), Value::text(i % 2 == 0 ? "user" : "assistant"));
        message.set(Value::text("content"), Value::text(content));
        messages.push_back(Value::dict(std::move(message)));
      }
      const Variables variables{{"messages", Value::list(std::move(messages))}};
      const Template written(source, "t.jinja");
      EXPECT_GT(written.render(variables, 0).text.size(), size_t{4} << 20) << count;
    }
}

// Sources of the greatest length, in forms that are long to read.
TEST(JinjaBombs, LongSourcesAreReadSoonInBoundedMemory) {
  const auto filled = [](const std::string& begin, const auto& part, const std::string& end) {
    std::string all = begin;
    for (int i = 0; all.size() + end.size() + 40 < kMaxSourceBytes; ++i) all += part(i);
    return all + end;
  };
  const auto same = [](const char* text) { return [text](int) { return std::string(text); }; };
  const auto numbered = [](const char* before, const char* after) {
    return [=](int i) { return before + std::to_string(i) + after; };
  };
  const std::string sources[] = {
      filled("{{ [", same("1,"), "] }}"),
      filled("{{ {", numbered("", ":1,"), "} | length }}"),
      filled("", same("{{a}}"), ""),
      filled("", numbered("{{a", "}}"), ""),
      filled("", numbered("{%set a", "=1%}"), ""),
      filled("{% macro f(", numbered("a", ","), "b) %}{% endmacro %}{{ f() }}"),
      filled("{{ dict(", numbered("a", "=1,"), "b=1) | length }}"),
      filled("{{ 'a'", same("'a'"), " }}"),
      filled("{{ 'a'", same("~'a'"), " }}"),
      filled("", same("{#"), ""),
      filled("{% raw %}", same("{%  endra"), ""),
      filled("", same("{ "), ""),
      filled("", same("\n"), "{{ 1"),
  };
  // A byte of source becomes up to 150 in memory.
  constexpr int64_t kMostOfSource = 150 * static_cast<int64_t>(kMaxSourceBytes);
  for (const std::string& source : sources)
    check(cost_of(source), source.substr(0, 100), kMostBytes + kMostOfSource);
}

}  // namespace
}  // namespace snug::text::jinja
