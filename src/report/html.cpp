#include "report/html.h"

#include <fmt/format.h>

namespace snug::report {
namespace {

// The colours c0 to c14 can be told apart in the light and in the dark scheme.
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --back: #ffffff; --text: #1c2128; --faint: #66707c; --line: #d5dae0; --card: #f4f6f8;
  --c0: #4269d0; --c1: #8aa9f0; --c2: #efb118; --c3: #ff725c; --c4: #6cc5b0; --c5: #3ca951; --c6: #a463f2; --c7: #9c6b4e;
  --c8: #97bbf5; --c9: #d9639f; --c10: #9498a0; --c11: #b8860b;
  --c12: #2f7f8f; --c13: #7d8a1f; --c14: #5b3f99; --mark: #bfe8c8; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --text: #e6e9ed; --faint: #99a2ad; --line: #363c44; --card: #1f242a;
  --c0: #6a8bea; --c1: #a9c1f7; --c2: #f2c14e; --c3: #ff8a76; --c4: #7fd6c2; --c5: #5fc774; --c6: #bb8af6; --c7: #bd8f74;
  --c8: #b4cff8; --c9: #e588b8; --c10: #a9adb4; --c11: #d6a532;
  --c12: #56a9b9; --c13: #aebb4b; --c14: #9a82d6; --mark: #1f5631; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 72rem; background: var(--back); color: var(--text);
  font: 16px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p { margin: .5rem 0; overflow-wrap: anywhere; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; }
.figures div { background: var(--card); border-radius: .5rem; padding: .6rem .8rem; }
.figures span { display: block; color: var(--faint); font-size: .85rem; }
.figures b { font-size: 1.1rem; font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.chart { display: grid; grid-template-columns: auto 1fr; gap: .2rem .5rem; font-size: .8rem; color: var(--faint); }
.chart svg { width: 100%; height: 100%; display: block; background: var(--card); overflow: hidden; }
.plot { position: relative; height: 17rem; }
.low { height: 11rem; }
.y { display: flex; flex-direction: column; justify-content: space-between; text-align: right; }
.x { grid-column: 2; display: flex; justify-content: space-between; }
.legend { grid-column: 1 / 3; display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: .3rem 0; margin: 0; list-style: none; }
.legend i { display: inline-block; width: .8em; height: .8em; border-radius: .15em; margin-right: .4em; }
.limit, .curve { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; }
.faint { stroke-width: 1; opacity: .4; }
.point { fill: none; stroke-width: 6; stroke-linecap: round; vector-effect: non-scaling-stroke; }
.grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
.ticks_y { position: relative; min-width: 3.9rem; }
.ticks_y span { position: absolute; right: 0; transform: translateY(-50%); white-space: nowrap; }
.ticks_x { grid-column: 2; position: relative; height: 1.3em; }
.ticks_x span { position: absolute; transform: translateX(-50%); white-space: nowrap; }
.ticks_x .first { transform: none; }
.ticks_x .last { transform: translateX(-100%); }
.low svg { overflow: visible; }
.limit { stroke: var(--text); stroke-dasharray: 5 4; }
.mark { stroke: var(--text); stroke-width: 1; vector-effect: non-scaling-stroke; }
.lanes { display: grid; grid-template-columns: auto 1fr; gap: .35rem .5rem; font-size: .8rem; color: var(--faint); }
.lanes svg { width: 100%; height: 1.8rem; display: block; background: var(--card); }
.bars { display: grid; grid-template-columns: auto 1fr auto; gap: .1rem .5rem; font-size: .8rem; color: var(--faint); }
.bars div { background: var(--c0); height: .8rem; align-self: center; min-width: 1px; }
.bars span:nth-child(3n) { text-align: right; }
.sample { background: var(--card); border-radius: .5rem; padding: .6rem .8rem; margin: .5rem 0; max-height: 24rem; overflow-y: auto;
  font: .85rem/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.sample mark { background: var(--mark); color: var(--text); }
.sample i { color: var(--faint); font-style: normal; }
)";

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else if (c == '\'')
      result += "&#39;";
    else
      result += c;
  }
  return result;
}

Page::Page(std::string_view title) : title_(title) {}

void Page::heading(std::string_view text) { body_ += fmt::format("<h2>{}</h2>\n", escaped(text)); }

void Page::paragraph(std::string_view text) { body_ += fmt::format("<p>{}</p>\n", escaped(text)); }

void Page::figures(const std::vector<Figure>& figures) {
  body_ += "<div class=\"figures\">\n";
  for (const Figure& figure : figures)
    body_ += fmt::format("<div><span>{}</span><b>{}</b></div>\n", escaped(figure.name),
                         escaped(figure.value));
  body_ += "</div>\n";
}

void Page::table(const std::vector<std::vector<std::string>>& rows) {
  body_ += "<div class=\"wide\"><table>\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const char* cell = i == 0 ? "th" : "td";
    body_ += "<tr>";
    for (const std::string& text : rows[i])
      body_ += fmt::format("<{0}>{1}</{0}>", cell, escaped(text));
    body_ += "</tr>\n";
  }
  body_ += "</table></div>\n";
}

void Page::marked_text(const std::vector<MarkedText>& parts) {
  body_ += "<div class=\"sample\">";
  for (const MarkedText& part : parts) {
    const std::string text = escaped(part.text);
    if (part.is_marked)
      body_ += fmt::format("<mark>{}</mark>", text);
    else if (part.is_faint)
      body_ += fmt::format("<i>{}</i>", text);
    else
      body_ += text;
  }
  body_ += "</div>\n";
}

void Page::chart(std::string_view html) { body_ += html; }

void Page::append(const Page& page) { body_ += page.body_; }

std::string Page::text() const {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n{3}"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}</body>\n</"
      "html>\n",
      escaped(title_), kStyle, body_,
      reload_seconds_ == 0
          ? ""
          : fmt::format("<meta http-equiv=\"refresh\" content=\"{}\"/>\n", reload_seconds_));
}

}  // namespace snug::report
