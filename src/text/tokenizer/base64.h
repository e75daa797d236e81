// Bytes as base64 (RFC 4648) and back. Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace snug::text {

// The bytes that `text` stands for, or nothing where it is no base64.
std::optional<std::string> from_base64(std::string_view text);

std::string to_base64(std::string_view bytes);

}  // namespace snug::text
