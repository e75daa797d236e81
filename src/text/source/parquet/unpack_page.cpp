#include "text/source/parquet/unpack_page.h"

#include <fmt/format.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>

#include "text/source/parquet/compact.h"

namespace snug::text::parquet {
namespace {

[[noreturn]] void fail() { throw Damaged("a page cannot be unpacked"); }

void unpack_gzip(std::string_view packed, std::span<char> to) {
  constexpr int kAnyHeader = 32 + MAX_WBITS;
  z_stream state{};
  if (inflateInit2(&state, kAnyHeader) != Z_OK) fail();
  // zlib does not write to what it reads.
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  state.avail_in = static_cast<uInt>(packed.size());
  state.next_out = reinterpret_cast<Bytef*>(to.data());
  state.avail_out = static_cast<uInt>(to.size());
  const int result = inflate(&state, Z_FINISH);
  const bool is_whole = result == Z_STREAM_END && state.avail_out == 0;
  inflateEnd(&state);
  if (!is_whole) fail();
}

void unpack_snappy(std::string_view packed, std::span<char> to) {
  size_t size = 0;
  if (!snappy::GetUncompressedLength(packed.data(), packed.size(), &size) || size != to.size() ||
      !snappy::RawUncompress(packed.data(), packed.size(), to.data()))
    fail();
}

void unpack_zstd(std::string_view packed, std::span<char> to) {
  const size_t size = ZSTD_decompress(to.data(), to.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0 || size != to.size()) fail();
}

const char* name_of(Codec codec) {
  switch (codec) {
    case Codec::lzo:
      return "LZO";
    case Codec::brotli:
      return "Brotli";
    case Codec::lz4:
    case Codec::lz4_raw:
      return "LZ4";
    default:
      return "unknown";
  }
}

}  // namespace

void unpack_page(Codec codec, std::string_view packed, std::span<char> to) {
  switch (codec) {
    case Codec::none:
      if (packed.size() != to.size()) fail();
      std::ranges::copy(packed, to.begin());
      return;
    case Codec::snappy:
      return unpack_snappy(packed, to);
    case Codec::gzip:
      return unpack_gzip(packed, to);
    case Codec::zstd:
      return unpack_zstd(packed, to);
    default:
      throw Damaged(fmt::format(
          "it is packed with the codec {}, which is not read; snappy, zstd, gzip and none are",
          name_of(codec)));
  }
}

}  // namespace snug::text::parquet
