#include "text/source/byte_stream.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

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

// Several gzip members one after the other are one file, as gunzip has it.
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
    // Zeros after the last member fill a block of a tape.
    while (!in_member_ && state_.avail_in > 0 && *state_.next_in == 0) {
      ++state_.next_in;
      --state_.avail_in;
    }
    return state_.avail_in > 0;
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
};

class ZstdBytes : public ByteStream {
 public:
  explicit ZstdBytes(const std::string& path)
      : path_(path), file_(path), state_(ZSTD_createDStream()) {
    if (state_ == nullptr) base::throw_user_error("{}: no memory", path);
    ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax, kWindowBits);
  }

  bool next(std::string& piece) override {
    piece.resize(kPieceBytes);
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    while (out.pos < out.size) {
      const bool is_more = fill();
      const size_t before = in_.pos + out.pos;
      const size_t left = ZSTD_decompressStream(state_.get(), &out, &in_);
      if (ZSTD_isError(left) != 0)
        fail(path_,
             fmt::format("it is no zstd file, is damaged, or was packed with a window of more "
                         "than {} MiB: {}",
                         (1 << kWindowBits) >> 20, ZSTD_getErrorName(left)));
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
  // The memory that reading holds (reading_bytes).
  static constexpr int kWindowBits = 23;
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

}  // namespace snug::text
