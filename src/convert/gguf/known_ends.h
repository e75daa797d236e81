// Tokens at which llama.cpp ends an answer because of their text, whatever a file's ids say. Pure
// functions, any thread.
#pragma once

#include <string_view>

namespace snug::convert {

bool is_known_end(std::string_view token);

}  // namespace snug::convert
