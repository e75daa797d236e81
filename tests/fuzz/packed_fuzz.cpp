// Packed files: bytes as they are, or a text packed here in two parts, of which a byte may be
// changed.
#include <zlib.h>
#include <zstd.h>

#include "fuzz_input.h"
#include "text/source/byte_stream.h"

namespace snug::fuzz {
namespace {

constexpr size_t kMostRead = size_t{4} << 20;  // little may be packed that becomes very much

std::string gzip_packed(std::string_view text) {
  z_stream state{};
  constexpr int kGzipWindow = 16 + MAX_WBITS;
  deflateInit2(&state, 1, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY);
  std::string input(text);
  std::string packed(deflateBound(&state, text.size()) + 64, '\0');
  state.next_in = reinterpret_cast<Bytef*>(input.data());
  state.avail_in = static_cast<uInt>(input.size());
  state.next_out = reinterpret_cast<Bytef*>(packed.data());
  state.avail_out = static_cast<uInt>(packed.size());
  deflate(&state, Z_FINISH);
  packed.resize(state.total_out);
  deflateEnd(&state);
  return packed;
}

std::string zstd_packed(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  return packed;
}

std::string text_of(const std::string& path) {
  const auto stream = text::open_stream(path);
  std::string text;
  for (std::string piece; text.size() < kMostRead && stream->next(piece);) {
    require(!piece.empty() && piece.size() <= text::ByteStream::kPieceBytes, "a piece has bytes");
    text += piece;
  }
  return text;
}

}  // namespace
}  // namespace snug::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace snug;
  fuzz::FuzzInput input(data, size);
  const uint8_t choice = input.byte();
  const bool is_gzip = choice % 2 == 0;
  const bool is_packed_here = choice % 4 >= 2;
  const size_t changed = choice % 8 >= 4 ? input.byte() : 0;
  std::string bytes(input.rest());
  if (is_packed_here) {
    const std::string_view text = input.rest();
    const auto packed = is_gzip ? fuzz::gzip_packed : fuzz::zstd_packed;
    bytes = packed(text.substr(0, text.size() / 2)) + packed(text.substr(text.size() / 2));
    if (changed > 0)
      bytes[changed % bytes.size()] = static_cast<char>(~bytes[changed % bytes.size()]);
  }
  const std::string path = fuzz::fuzzed_file(is_gzip ? "data.jsonl.gz" : "data.jsonl.zst", bytes);
  fuzz::read_or_refuse(path, [&] {
    const std::string text = fuzz::text_of(path);
    if (is_packed_here && changed == 0)
      fuzz::require(text == input.rest(), "what was packed comes out");
  });
  return 0;
}
