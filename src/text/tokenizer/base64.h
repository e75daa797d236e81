// Encodes bytes as base64 (RFC 4648) and decodes them. Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace snug::text {

// The bytes that `text` encodes, or nothing if it is not base64.
std::optional<std::string> from_base64(std::string_view text);

std::string to_base64(std::string_view bytes);

}  // namespace snug::text
