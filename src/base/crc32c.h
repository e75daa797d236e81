// CRC-32C (Castagnoli), the checksum of TFRecord files.
#pragma once

#include <cstdint>
#include <string_view>

namespace snug::base {

uint32_t crc32c(std::string_view bytes);

}  // namespace snug::base
