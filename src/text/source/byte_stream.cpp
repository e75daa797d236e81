#include "text/source/byte_stream.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ending.h"

namespace snug::text {
namespace {

class FileBytes : public ByteStream {
 public:
  explicit FileBytes(const std::string& path)
      : file_(base::File::open_for_reading(path)), size_(file_.size()) {}

  bool next(std::string& piece) override {
    piece.resize(static_cast<size_t>(std::min(kPieceBytes, size_ - at_)));
    file_.read_at(at_, piece.data(), static_cast<int64_t>(piece.size()));
    at_ += static_cast<int64_t>(piece.size());
    return !piece.empty();
  }

 private:
  base::File file_;
  int64_t size_;
  int64_t at_ = 0;
};

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw base::UserError(what, {path, 0, 0});
}
[[noreturn]] void fail_cut(const std::string& path) {
  fail(path, "the compressed file ends before its contents do: was it copied or downloaded whole?");
}

// Several gzip members one after the other are one file, and what follows them and is none is left,
// as gunzip has it.
class GzipBytes : public ByteStream {
 public:
  explicit GzipBytes(const std::string& path) : path_(path), file_(path) {
    constexpr int kGzipWindow = 16 + MAX_WBITS;
    if (inflateInit2(&state_, kGzipWindow) != Z_OK) base::throw_user_error("{}: no memory", path);
  }
  ~GzipBytes() override { inflateEnd(&state_); }

  bool next(std::string& piece) override {
    piece.resize(kPieceBytes);
    state_.next_out = as_bytes(piece);
    state_.avail_out = static_cast<uInt>(piece.size());
    while (state_.avail_out > 0) {
      const bool is_more = fill();
      const int result = inflate(&state_, Z_NO_FLUSH);
      if (result == Z_STREAM_END)
        end_member();
      else if (result == Z_OK)
        in_member_ = true;
      else if (result != Z_BUF_ERROR)
        fail(path_, fmt::format("it is no gzip file, or it is damaged{}{}",
                                state_.msg != nullptr ? ": " : "",
                                state_.msg != nullptr ? state_.msg : ""));
      if (result == Z_BUF_ERROR && !is_more) {
        if (in_member_) fail_cut(path_);
        break;
      }
    }
    piece.erase(piece.size() - state_.avail_out);
    return !piece.empty();
  }

 private:
  static Bytef* as_bytes(std::string& text) { return reinterpret_cast<Bytef*>(text.data()); }

  // Whether there is something more to unpack. The state may hold text without it.
  bool fill() {
    if (state_.avail_in == 0 && file_.next(packed_)) {
      state_.next_in = as_bytes(packed_);
      state_.avail_in = static_cast<uInt>(packed_.size());
    }
    if (!in_member_ && !begins_member({state_.next_in, state_.avail_in})) is_past_members_ = true;
    if (is_past_members_) state_.avail_in = 0;
    return state_.avail_in > 0;
  }

  // As far as the bytes go.
  static bool begins_member(std::span<const Bytef> bytes) {
    constexpr std::array<Bytef, 2> kMagic{0x1F, 0x8B};
    const size_t there = std::min(bytes.size(), kMagic.size());
    return std::equal(kMagic.begin(), kMagic.begin() + there, bytes.begin());
  }

  void end_member() {
    inflateReset(&state_);
    in_member_ = false;
  }

  std::string path_;
  FileBytes file_;
  std::string packed_;
  z_stream state_{};
  bool in_member_ = true;  // an empty file holds none, and is no gzip file
  bool is_past_members_ = false;
};

// Bytes up to level 19, and those that zstd itself unpacks without being asked to.
constexpr int64_t kLeastWindow = int64_t{8} << 20;
constexpr int64_t kMostWindow = int64_t{128} << 20;

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  return value;
}

// Bytes that unpacking a frame looks back at, as its header says (RFC 8878, 3.1.1.1); 0 for what is
// none.
uint64_t window_of_frame(std::string_view header) {
  constexpr std::string_view kMagic = "\x28\xB5\x2F\xFD";
  constexpr size_t kWithSizes = 14;
  if (!header.starts_with(kMagic) || header.size() < kMagic.size() + kWithSizes) return 0;
  header.remove_prefix(kMagic.size());
  const auto descriptor = static_cast<unsigned char>(header[0]);
  const auto next = static_cast<unsigned char>(header[1]);
  const bool is_of_contents = (descriptor & 0x20) != 0;
  if (!is_of_contents) {
    const uint64_t base = uint64_t{1} << (10 + (next >> 3));
    return base + base / 8 * (next & 7);
  }
  constexpr std::array<size_t, 4> kDictionaryBytes{0, 1, 2, 4};
  const size_t size_bytes = size_t{1} << (descriptor >> 6);
  const uint64_t contents =
      little_endian(header.substr(1 + kDictionaryBytes[descriptor & 3], size_bytes));
  return size_bytes == 2 ? contents + 256 : contents;
}

// What reading a .zst file has to hold of its text: the window of its first frame, in bounds.
int64_t zstd_window(const std::string& path) {
  const base::File file = base::File::open_for_reading(path);
  constexpr int64_t kHeaderBytes = 18;
  const int64_t size = file.size();
  std::string header;
  for (int64_t at = 0; at < size;) {
    header.resize(static_cast<size_t>(std::min(kHeaderBytes, size - at)));
    file.read_at(at, header.data(), static_cast<int64_t>(header.size()));
    const std::string_view begin = header;
    // Frames of somebody else's, which are passed over, begin so, and then have their size.
    const bool is_skipped =
        begin.size() >= 8 && (little_endian(begin.substr(0, 4)) & ~uint64_t{15}) == 0x184D2A50;
    if (!is_skipped) break;
    at += 8 + static_cast<int64_t>(little_endian(begin.substr(4, 4)));
  }
  return static_cast<int64_t>(
      std::clamp<uint64_t>(window_of_frame(header), kLeastWindow, kMostWindow));
}

class ZstdBytes : public ByteStream {
 public:
  explicit ZstdBytes(const std::string& path)
      : path_(path), file_(path), window_(zstd_window(path)), state_(ZSTD_createDStream()) {
    if (state_ == nullptr) base::throw_user_error("{}: no memory", path);
    ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax,
                           static_cast<int>(std::bit_width(static_cast<uint64_t>(window_ - 1))));
  }

  bool next(std::string& piece) override {
    piece.resize(kPieceBytes);
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    while (out.pos < out.size) {
      const bool is_more = fill();
      const size_t before = in_.pos + out.pos;
      const size_t left = ZSTD_decompressStream(state_.get(), &out, &in_);
      if (ZSTD_isError(left) != 0) fail_packed(left);
      if (in_.pos + out.pos > before) {
        in_frame_ = left != 0;
      } else if (!is_more) {
        if (in_frame_) fail_cut(path_);
        break;
      }
    }
    piece.erase(out.pos);
    return !piece.empty();
  }

 private:
  [[noreturn]] void fail_packed(size_t error) const {
    if (ZSTD_getErrorCode(error) != ZSTD_error_frameParameter_windowTooLarge)
      fail(path_,
           fmt::format("it is no zstd file, or it is damaged: {}", ZSTD_getErrorName(error)));
    fail(path_, fmt::format("it was packed with a window of more than {} MiB, which would have to "
                            "be held while it is read; pack it again: zstd -dc --long=31 FILE | "
                            "zstd -o NEW.zst",
                            window_ >> 20));
  }

  struct Free {
    void operator()(ZSTD_DStream* state) const { ZSTD_freeDStream(state); }
  };

  // Whether there is something more to unpack. The state may hold text without it.
  bool fill() {
    if (in_.pos == in_.size && file_.next(packed_)) in_ = {packed_.data(), packed_.size(), 0};
    return in_.pos < in_.size;
  }

  std::string path_;
  FileBytes file_;
  std::string packed_;
  int64_t window_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  std::unique_ptr<ZSTD_DStream, Free> state_;
  bool in_frame_ = true;
};

}  // namespace

std::unique_ptr<ByteStream> open_stream(const std::string& path) {
  const std::string packing = base::file_ending(path).packing;
  if (packing == ".gz") return std::make_unique<GzipBytes>(path);
  if (packing == ".zst") return std::make_unique<ZstdBytes>(path);
  return std::make_unique<FileBytes>(path);
}

int64_t stream_bytes(const std::string& path) {
  constexpr int64_t kBuffers = int64_t{2} << 20;
  return kBuffers + (base::file_ending(path).packing == ".zst" ? zstd_window(path) : 0);
}

}  // namespace snug::text
