// SHA-256 (FIPS 180-4), for fingerprints that other programs also compute. Pure functions, any
// thread.
#pragma once

#include <string>
#include <string_view>

namespace snug::base {

// The digest as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace snug::base
