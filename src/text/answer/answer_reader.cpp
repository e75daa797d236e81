#include "text/answer/answer_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/json_parser.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

using nlohmann::ordered_json;
using AnswerKind = AnswerPiece::Kind;

constexpr size_t kMostNameBytes = 256;

size_t leading_blanks(std::string_view text) {
  const auto* const at = std::ranges::find_if_not(text, [](char c) { return is_space(c); });
  return static_cast<size_t>(at - text.begin());
}

size_t without_last_blanks(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text.size();
}

// The length of the text without an end that may be the beginning of the mark.
size_t before_begun_mark(std::string_view text, std::string_view mark) {
  size_t size = std::min(text.size(), mark.size() - 1);
  while (!mark.starts_with(text.substr(text.size() - size))) --size;
  return text.size() - size;
}

// Nothing for a text that is no JSON.
std::optional<ordered_json> call_json_in(const std::string& text) {
  struct NoJson {};
  try {
    return base::parse_ordered_json(text, [](const std::string&, size_t) { throw NoJson(); });
  } catch (const NoJson&) {
    return std::nullopt;
  }
}

// The arguments of a call as the text of an object; nothing where they are something else.
std::optional<std::string> arguments_text(const ordered_json& given) {
  if (given.is_object()) return given.dump();
  if (!given.is_string()) return std::nullopt;
  const std::optional<ordered_json> inner = call_json_in(given.get<std::string>());
  return inner && inner->is_object() ? std::optional(inner->dump()) : std::nullopt;
}

}  // namespace

AnswerReader::AnswerReader(AnswerMarks marks)
    : marks_(std::move(marks)),
      place_(marks_.thought == nullptr  ? Place::answer
             : marks_.begins_in_thought ? Place::thought
                                        : Place::beginning) {}

std::vector<AnswerPiece> AnswerReader::push(std::string_view text) {
  held_ += text;
  return read(false);
}

std::vector<AnswerPiece> AnswerReader::finish() { return read(true); }

std::vector<AnswerPiece> AnswerReader::read(bool at_end) {
  while (!held_.empty() && step(at_end)) continue;
  return std::exchange(pieces_, {});
}

// Goes on to the next place. False: that needs more text.
bool AnswerReader::step(bool at_end) {
  switch (place_) {
    case Place::beginning:
      return step_beginning(at_end);
    case Place::thought:
      return step_thought(at_end);
    case Place::after_thought:
      held_.erase(0, leading_blanks(held_));
      if (!held_.empty()) place_ = Place::answer;
      return true;
    case Place::answer:
      return step_answer(at_end);
    case Place::content:
      return step_content(at_end);
    case Place::call:
      return step_call(at_end);
    case Place::after_call:
      return step_after_call(at_end);
  }
  return false;
}

void AnswerReader::give(AnswerKind kind, std::string_view text) {
  if (text.empty()) return;
  if (!pieces_.empty() && pieces_.back().kind == kind)
    pieces_.back().text += text;
  else
    pieces_.push_back({.kind = kind, .text = std::string(text)});
}

bool AnswerReader::step_beginning(bool at_end) {
  const std::string_view open = marks_.thought->open;
  const size_t blanks = leading_blanks(held_);
  const std::string_view rest = std::string_view(held_).substr(blanks);
  if (rest.starts_with(open)) {
    held_.erase(0, blanks + open.size());
    place_ = Place::thought;
    return true;
  }
  if (!at_end && open.starts_with(rest)) return false;
  place_ = Place::answer;
  return true;
}

bool AnswerReader::step_thought(bool at_end) {
  if (!has_thought_) held_.erase(0, leading_blanks(held_));
  has_thought_ = !held_.empty();
  const std::string_view close = marks_.thought->close;
  const size_t at = held_.find(close);
  const bool is_closed = at != std::string::npos;
  const std::string_view thought =
      std::string_view(held_).substr(0, is_closed ? at
                                        : at_end  ? held_.size()
                                                  : before_begun_mark(held_, close));
  const size_t given = without_last_blanks(thought);
  give(AnswerKind::thought, thought.substr(0, given));
  held_.erase(0, is_closed ? at + close.size() : at_end ? held_.size() : given);
  if (is_closed) place_ = Place::after_thought;
  return is_closed;
}

// Where no mark says it, an answer that begins as an object is a call.
bool AnswerReader::step_answer(bool at_end) {
  if (marks_.calls == nullptr || !marks_.calls->begin.empty()) {
    place_ = Place::content;
    return true;
  }
  const size_t blanks = leading_blanks(held_);
  if (blanks == held_.size() && !at_end) return false;
  place_ = held_.substr(blanks).starts_with('{') ? Place::call : Place::content;
  scan_ = {};
  return true;
}

bool AnswerReader::step_content(bool at_end) {
  const std::string_view begin = marks_.calls == nullptr ? "" : marks_.calls->begin;
  if (begin.empty()) {
    give(AnswerKind::content, held_);
    held_.clear();
    return false;
  }
  const size_t at = held_.find(begin);
  if (at != std::string::npos) {
    const size_t given = without_last_blanks(std::string_view(held_).substr(0, at));
    give(AnswerKind::content, std::string_view(held_).substr(0, given));
    before_call_ = held_.substr(given, at + begin.size() - given);
    held_.erase(0, at + begin.size());
    place_ = Place::call;
    scan_ = {};
    return true;
  }
  // Blanks before a call are no part of what is said.
  const size_t undecided = before_begun_mark(held_, begin);
  const size_t certain =
      at_end ? held_.size() : without_last_blanks(std::string_view(held_).substr(0, undecided));
  give(AnswerKind::content, std::string_view(held_).substr(0, certain));
  held_.erase(0, certain);
  return false;
}

// The end of a JSON value that begins at `begin` with a bracket; npos: it is not there yet.
size_t AnswerReader::json_end(size_t begin) {
  for (scan_.at = std::max(scan_.at, begin); scan_.at < held_.size();) {
    const char c = held_[scan_.at++];
    if (scan_.is_escaped) {
      scan_.is_escaped = false;
    } else if (scan_.in_text) {
      scan_.is_escaped = c == '\\';
      scan_.in_text = c != '"';
    } else if (c == '"') {
      scan_.in_text = true;
    } else if (c == '{' || c == '[') {
      ++scan_.depth;
    } else if ((c == '}' || c == ']') && --scan_.depth <= 0) {
      return scan_.at;
    }
  }
  return std::string::npos;
}

bool AnswerReader::step_call(bool at_end) {
  const CallFormat& format = *marks_.calls;
  size_t begin = 0;
  std::string_view name;
  if (!format.after_name.empty()) {
    const size_t at = held_.find(format.after_name);
    if (at == std::string::npos)
      return at_end || held_.size() > kMostNameBytes ? refuse_call() : false;
    name = std::string_view(held_).substr(0, at);
    name = name.substr(0, without_last_blanks(name));
    name.remove_prefix(leading_blanks(name));
    begin = at + format.after_name.size();
  }
  begin += leading_blanks(std::string_view(held_).substr(begin));
  if (begin == held_.size()) return at_end ? refuse_call() : false;
  if (held_[begin] != (format.is_list ? '[' : '{')) return refuse_call();
  const size_t end = json_end(begin);
  if (end == std::string::npos) return at_end ? refuse_call() : false;
  return take_call(begin, end, name) || refuse_call();
}

// Gives the calls of the JSON between these places, all or none.
bool AnswerReader::take_call(size_t begin, size_t end, std::string_view name) {
  const std::optional<ordered_json> json = call_json_in(held_.substr(begin, end - begin));
  if (!json) return false;
  const CallFormat& format = *marks_.calls;
  std::vector<ToolCall> calls;
  const auto add = [&](const ordered_json& one) {
    if (!one.is_object()) return false;
    std::optional<std::string> arguments;
    ToolCall call{.name = std::string(name)};
    if (format.after_name.empty()) {
      const auto named = one.find(std::string(format.name_key));
      if (named == one.end() || !named->is_string()) return false;
      call.name = named->get<std::string>();
      const auto given = one.find(std::string(format.arguments_key));
      arguments = given == one.end() ? "{}" : arguments_text(*given);
    } else {
      arguments = one.dump();
    }
    // Without marks an answer in JSON may mean something else.
    const bool is_known = std::ranges::count(marks_.names, call.name) > 0;
    if (call.name.empty() || !arguments || (format.begin.empty() && !is_known)) return false;
    call.arguments = std::move(*arguments);
    calls.push_back(std::move(call));
    return true;
  };
  const bool is_whole = format.is_list ? std::ranges::all_of(*json, add) : add(*json);
  if (!is_whole || calls.empty()) return false;
  pieces_.reserve(pieces_.size() + calls.size());
  for (ToolCall& call : calls)
    pieces_.push_back({.kind = AnswerKind::call, .call = std::move(call)});
  held_.erase(0, end);
  place_ = Place::after_call;
  return true;
}

// What looked like a call is text.
bool AnswerReader::refuse_call() {
  give(AnswerKind::content, std::exchange(before_call_, {}));
  place_ = Place::content;
  return true;
}

bool AnswerReader::step_after_call(bool at_end) {
  const std::string_view end = marks_.calls->end;
  held_.erase(0, leading_blanks(held_));
  if (held_.empty()) return false;
  if (!end.empty() && held_.starts_with(end)) {
    held_.erase(0, end.size());
    return true;
  }
  // A mark that was cut off says nothing.
  if (!end.empty() && end.starts_with(held_)) {
    if (at_end) held_.clear();
    return false;
  }
  // Calls without marks are divided by blanks or semicolons.
  if (marks_.calls->begin.empty() && held_.starts_with(';')) {
    held_.erase(0, 1);
    return true;
  }
  place_ = Place::answer;
  return true;
}

}  // namespace snug::text
