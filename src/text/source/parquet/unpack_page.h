// Unpacks a page of a Parquet file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "text/source/parquet/metadata.h"

namespace snug::text::parquet {

// Fills `to`, exactly. Throws Damaged, also for codecs that are not read, by name.
void unpack_page(Codec codec, std::string_view packed, std::span<char> to);

}  // namespace snug::text::parquet
