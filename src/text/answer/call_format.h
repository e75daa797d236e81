// The forms in which models write calls of tools, and which of them a model's template speaks. A
// form is a row of a table. Pure functions; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/chat/chat_template.h"

namespace snug::text {

struct ToolCall {
  std::string name{};
  std::string arguments{};  // a JSON object
  bool operator==(const ToolCall&) const = default;
};

// Calls stand between two marks: as JSON objects with a name and arguments, each between marks of
// its own or all in one list; or as a name, a mark, and the arguments as a JSON object.
struct CallFormat {
  std::string_view name;        // in messages
  std::string_view begin;       // empty: an answer is a call or a text, and no mark says which
  std::string_view end;         // empty: the JSON's own end
  bool is_list = false;         // of objects, in one pair of marks
  std::string_view name_key{};  // of an object
  std::string_view arguments_key{};
  std::string_view after_name{};  // empty: the name is in the object
};

std::span<const CallFormat> call_formats();

// Calls as a model writes them in this form, from the first mark to the last.
std::string written_calls(const CallFormat& format, std::span<const ToolCall> calls);

// What a template writes of tools.
struct TemplateCalls {
  bool takes_tools = false;            // it writes the tools of a conversation
  const CallFormat* format = nullptr;  // null: it writes calls in no form that is known
  // Of earlier turns, without a word that it does so.
  bool leaves_out_calls = false;
  bool leaves_out_results = false;
};

// A template is asked to write a tool and a call of it, and the format is the one by which that
// call is read back. Where it writes no calls, its text has the mark with which it asks for them.
// `source`: the template's own text.
TemplateCalls template_calls(const ChatTemplate& chat, std::string_view source);

// The name under which the template looks for tools besides `tools`; empty: none. `source`: as
// above.
std::string_view other_name_of_tools(std::string_view source);

}  // namespace snug::text
