// Byte counts as users write and read them: "80GiB", "24GB", "512 MiB", "1.5GiB", "1048576".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snug::base {

// Parses binary units (KiB to TiB) and decimal ones (kB to TB), with or without a space before the
// unit; a bare number is bytes. Returns nothing for a negative size, an unknown unit, or more than
// 2^63 - 1 bytes.
std::optional<int64_t> parse_byte_size(std::string_view text);

// Exact: "80GiB" when a binary unit divides the size, else plain bytes. Parsing the text gives the
// same size.
std::string exact_byte_size(int64_t bytes);

// A size for people to read: "1.50 GiB", "312 B".
std::string readable_byte_size(int64_t bytes);

}  // namespace snug::base
