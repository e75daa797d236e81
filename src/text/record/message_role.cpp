#include "text/record/message_role.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace snug::text {
namespace {

constexpr std::array<std::string_view, 9> kRoles{"system",    "developer",    "user",
                                                 "assistant", "tool",         "ipython",
                                                 "function",  "tool_results", "environment"};

// Of ShareGPT, NeMo, OpenAssistant, Gemini, LangChain, LLaMA-Factory, ms-swift and the like.
constexpr auto kOtherNames =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"human", "user"},
                                                                  {"prompter", "user"},
                                                                  {"gpt", "assistant"},
                                                                  {"chatgpt", "assistant"},
                                                                  {"bot", "assistant"},
                                                                  {"chatbot", "assistant"},
                                                                  {"model", "assistant"},
                                                                  {"ai", "assistant"},
                                                                  {"function_call", "assistant"},
                                                                  {"tool_call", "assistant"},
                                                                  {"observation", "tool"},
                                                                  {"tool_response", "tool"}});

std::string lower_name(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

}  // namespace

std::optional<std::string> known_role(std::string_view name) {
  const std::string lower = lower_name(name);
  const auto* const other =
      std::ranges::find(kOtherNames, lower, &std::pair<std::string_view, std::string_view>::first);
  if (other != kOtherNames.end()) return std::string(other->second);
  if (std::ranges::find(kRoles, lower) == kRoles.end()) return std::nullopt;
  return lower;
}

bool is_call_role(std::string_view name) {
  const std::string lower = lower_name(name);
  return lower == "function_call" || lower == "tool_call";
}

std::string known_role_names() {
  return fmt::format(
      "{}, human, gpt, model or bot; or, of calls and their results, function_call, tool_call, "
      "observation or tool_response",
      fmt::join(kRoles, ", "));
}

}  // namespace snug::text
