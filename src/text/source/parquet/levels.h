// Runs of small numbers as Parquet packs them (RLE / bit-packed hybrid): levels, and places in a
// dictionary. Also bits in a row, of DELTA_BINARY_PACKED. Throws Damaged where the bytes end.
#pragma once

#include <cstdint>
#include <string_view>

namespace snug::text::parquet {

// Numbers of `width` bits, at most 64, the lowest bit first.
class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t next(int width);
  size_t bytes_read() const { return (bit_ + 7) / 8; }

 private:
  std::string_view bytes_;
  size_t bit_ = 0;
};

class RunReader {
 public:
  RunReader() = default;
  // Numbers of `width` bits, at most 32.
  RunReader(std::string_view bytes, int width);
  uint32_t next();

 private:
  void read_run();

  std::string_view bytes_;
  size_t at_ = 0;
  int width_ = 0;
  uint64_t left_ = 0;  // of the run
  bool is_packed_ = false;
  uint32_t value_ = 0;  // of a run that repeats one
  BitReader bits_{{}};
};

}  // namespace snug::text::parquet
