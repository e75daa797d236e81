#include "serve/tool_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "serve/api_error.h"

namespace snug::serve {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostTools = 128;
constexpr size_t kMostNameLength = 64;

// A tool that was asked for; `parameters`: its schema, which may be missing.
struct AskedTool {
  std::string name{};
  ordered_json parameters = nullptr;
  bool is_strict = false;
};

bool is_function_name(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kMostNameLength && std::ranges::all_of(name, fits);
}

AskedTool tool_of(const ordered_json& given, size_t index) {
  RequestFields tool(given, fmt::format("tools[{}]", index));
  if (tool.text("type").value_or("") != "function")
    tool.refuse("type", "must be function: no other tools are known");
  std::optional<RequestFields> function = tool.object("function");
  if (!function) tool.refuse("function", "is missing");
  AskedTool asked{.name = function->text("name").value_or("")};
  if (!is_function_name(asked.name))
    function->refuse("name", fmt::format("must be a name of letters, digits, '_', '-' and '.', {} "
                                         "at most",
                                         kMostNameLength));
  function->text("description");
  if (const auto parameters = function->object("parameters"))
    asked.parameters = *function->find("parameters");
  const ordered_json type = asked.parameters.is_object()
                                ? asked.parameters.value("type", ordered_json("object"))
                                : "object";
  if (type != "object")
    function->refuse("parameters", "must be the schema of an object: arguments have names");
  asked.is_strict = function->boolean("strict").value_or(false);
  function->refuse_others();
  tool.refuse_others();
  return asked;
}

std::vector<AskedTool> tools_of(RequestFields& fields, const ordered_json& given) {
  if (!given.is_array()) fields.refuse("tools", "must be a list of tools");
  if (given.size() > kMostTools)
    fields.refuse("tools", fmt::format("has more than {} tools", kMostTools));
  std::vector<AskedTool> tools;
  tools.reserve(given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    AskedTool tool = tool_of(given[i], i);
    if (std::ranges::count(tools, tool.name, &AskedTool::name) > 0)
      fields.refuse("tools", fmt::format("has two functions of the name '{}'", tool.name));
    tools.push_back(std::move(tool));
  }
  return tools;
}

// What may be called, or has to be.
struct ToolChoice {
  enum class Kind { none, automatic, required };
  Kind kind = Kind::automatic;
  std::string name{};  // of the only one that is required; empty: any
};

ToolChoice choice_of(RequestFields& fields) {
  const ordered_json* given = fields.find("tool_choice");
  if (given == nullptr || *given == "auto") return {};
  if (*given == "none") return {.kind = ToolChoice::Kind::none};
  if (*given == "required") return {.kind = ToolChoice::Kind::required};
  constexpr const char* kExpected =
      "must be none, auto, required, or {\"type\": \"function\", \"function\": {\"name\": NAME}}";
  if (!given->is_object()) fields.refuse("tool_choice", kExpected);
  RequestFields choice(*given, "tool_choice");
  if (choice.text("type").value_or("") != "function") fields.refuse("tool_choice", kExpected);
  std::optional<RequestFields> function = choice.object("function");
  if (!function) fields.refuse("tool_choice", kExpected);
  const std::string name = function->text("name").value_or("");
  if (name.empty()) fields.refuse("tool_choice", kExpected);
  function->refuse_others();
  choice.refuse_others();
  return {.kind = ToolChoice::Kind::required, .name = name};
}

void check_template(RequestFields& fields, const ServedModel& model) {
  const text::TemplateCalls& calls = model.calls();
  if (!calls.takes_tools)
    fields.refuse("tools",
                  "cannot be told to this model: its chat template does not write them. Choose a "
                  "template that does with chat_template=, or describe them in a message and ask "
                  "for JSON with response_format");
  if (calls.format != nullptr) return;
  std::vector<std::string_view> names;
  for (const text::CallFormat& format : text::call_formats()) names.push_back(format.name);
  fields.refuse("tools",
                fmt::format("cannot be called by this model: its chat template writes calls in a "
                            "form that is not read; there are {}",
                            fmt::join(names, ", ")));
}

}  // namespace

AskedTools read_tools(RequestFields& fields, const ServedModel& model) {
  const ordered_json* given = fields.find("tools");
  const ToolChoice choice = choice_of(fields);
  const bool is_single = !fields.boolean("parallel_tool_calls").value_or(true);
  const std::vector<AskedTool> tools =
      given == nullptr ? std::vector<AskedTool>() : tools_of(fields, *given);
  if (tools.empty()) {
    if (choice.kind == ToolChoice::Kind::required) fields.refuse("tool_choice", "needs tools");
    return {};
  }
  if (choice.kind == ToolChoice::Kind::none) return {};
  check_template(fields, model);
  const bool is_required = choice.kind == ToolChoice::Kind::required;
  AskedTools asked{.tools = *given};
  asked.is_held = is_required || is_single;
  asked.calls = {.format = model.calls().format,
                 .is_optional = !is_required,
                 .is_single = is_single || !choice.name.empty()};
  asked.calls.functions.reserve(tools.size());
  for (const AskedTool& tool : tools) {
    if (!choice.name.empty() && tool.name != choice.name) continue;
    text::CalledFunction function{.name = tool.name};
    // A function that nobody described takes nothing.
    if (is_required || tool.is_strict)
      function.parameters =
          tool.parameters.is_null() || tool.parameters.empty()
              ? ordered_json{{"type", "object"}, {"properties", ordered_json::object()}}
              : tool.parameters;
    asked.is_held = asked.is_held || tool.is_strict;
    asked.calls.functions.push_back(std::move(function));
  }
  if (asked.calls.functions.empty())
    fields.refuse("tool_choice",
                  fmt::format("names '{}', which is none of the tools", choice.name));
  return asked;
}

}  // namespace snug::serve
