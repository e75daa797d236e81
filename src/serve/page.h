// The page that the server shows: src/serve/page.html, which is a part of the binary.
#pragma once

#include <string_view>

namespace snug::serve {

std::string_view page();

}  // namespace snug::serve
