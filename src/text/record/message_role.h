// Who says a message, in the words of records: those that chat templates know, and those of other
// tools, in any case. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace snug::text {

// The role as templates have it: Human and USER are user. None where it is not known.
std::optional<std::string> known_role(std::string_view name);

// Whether a message of this role is a call of the assistant's (function_call, tool_call).
bool is_call_role(std::string_view name);

// What a role may be called, for complaints.
std::string known_role_names();

}  // namespace snug::text
