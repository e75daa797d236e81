#include "text/source/parquet/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "text/source/parquet/compact.h"
#include "text/source/parquet/levels.h"

namespace snug::text::parquet {
namespace {

static_assert(std::endian::native == std::endian::little, "Parquet's numbers are read as they lie");

[[noreturn]] void fail_short() { throw Damaged("a page ends before its values do"); }

// The first `size` bytes, which are taken away.
std::string_view take(std::string_view& bytes, uint64_t size) {
  if (size > bytes.size()) fail_short();
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

template <typename T>
T take_number(std::string_view& bytes) {
  T value{};
  std::memcpy(&value, take(bytes, sizeof(T)).data(), sizeof(T));
  return value;
}

Scalar of_integer(int64_t value) {
  Scalar scalar;
  scalar.integer = value;
  return scalar;
}
Scalar of_bytes(std::string_view bytes) {
  Scalar scalar;
  scalar.bytes = bytes;
  return scalar;
}

int64_t width_of(const SchemaElement& column) {
  switch (*column.physical) {
    case Physical::int32:
    case Physical::float32:
      return 4;
    case Physical::int64:
    case Physical::float64:
      return 8;
    case Physical::int96:
      return 12;
    case Physical::fixed_bytes:
      if (column.width <= 0) throw Damaged("a column of fixed width has none");
      return column.width;
    case Physical::boolean:
    case Physical::byte_array:
      break;
  }
  throw Damaged("a column of its type is not written so");
}

// A value of a fixed width.
Scalar scalar_of(Physical physical, std::string_view bytes) {
  Scalar scalar;
  switch (physical) {
    case Physical::int32:
      scalar.integer = take_number<int32_t>(bytes);
      break;
    case Physical::int64:
      scalar.integer = take_number<int64_t>(bytes);
      break;
    case Physical::float32:
      scalar.single = take_number<float>(bytes);
      break;
    case Physical::float64:
      scalar.real = take_number<double>(bytes);
      break;
    default:
      scalar.bytes = bytes;
  }
  return scalar;
}

class PlainValues : public ValueReader {
 public:
  PlainValues(const SchemaElement& column, std::string_view bytes)
      : physical_(*column.physical), bytes_(bytes), bits_(bytes) {
    if (physical_ != Physical::boolean && physical_ != Physical::byte_array)
      width_ = width_of(column);
  }
  Scalar next() override {
    if (physical_ == Physical::boolean) return of_integer(static_cast<int64_t>(bits_.next(1)));
    if (physical_ == Physical::byte_array)
      return of_bytes(take(bytes_, take_number<uint32_t>(bytes_)));
    return scalar_of(physical_, take(bytes_, static_cast<uint64_t>(width_)));
  }

 private:
  Physical physical_;
  int64_t width_ = 0;
  std::string_view bytes_;
  BitReader bits_;
};

class DictionaryValues : public ValueReader {
 public:
  DictionaryValues(std::string_view bytes, const std::vector<Scalar>* dictionary)
      : dictionary_(dictionary) {
    if (dictionary_ == nullptr) throw Damaged("a page points into a dictionary that is not there");
    if (bytes.empty()) return;  // of nulls alone
    const auto width = static_cast<uint8_t>(bytes[0]);
    places_ = RunReader(bytes.substr(1), width);
  }
  Scalar next() override {
    const uint32_t place = places_.next();
    if (place >= dictionary_->size()) throw Damaged("a page points behind its dictionary");
    return (*dictionary_)[place];
  }

 private:
  const std::vector<Scalar>* dictionary_;
  RunReader places_;
};

class RunLengthBooleans : public ValueReader {
 public:
  explicit RunLengthBooleans(std::string_view bytes) {
    const auto size = take_number<uint32_t>(bytes);
    runs_ = RunReader(take(bytes, size), 1);
  }
  Scalar next() override { return of_integer(runs_.next()); }

 private:
  RunReader runs_;
};

// DELTA_BINARY_PACKED: blocks of differences, less the least of each block, packed in miniblocks of
// a width each.
class Deltas {
 public:
  explicit Deltas(std::string_view bytes) : bytes_(bytes) {
    const uint64_t block = varint();
    miniblocks_ = varint();
    left_ = varint();
    value_ = static_cast<uint64_t>(zigzag());
    if (miniblocks_ == 0 || block == 0 || block % miniblocks_ != 0 || block > kMaxBlock)
      throw Damaged("a page's differences have blocks of no size");
    in_miniblock_ = block / miniblocks_;
    if (in_miniblock_ % 8 != 0) throw Damaged("a page's differences have blocks of no size");
  }

  uint64_t size() const { return left_; }  // values that are not read yet

  int64_t next() {
    if (left_ == 0) fail_short();
    --left_;
    const uint64_t value = value_;
    if (left_ > 0) step();
    return static_cast<int64_t>(value);
  }

  // The bytes after the last value; call once all are read.
  std::string_view rest() const { return bytes_; }

 private:
  static constexpr uint64_t kMaxBlock = 1 << 20;

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(bytes_, 1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    throw Damaged("a page's number has too many bytes");
  }
  int64_t zigzag() {
    const uint64_t value = varint();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }

  void step() {
    if (in_this_ == 0) begin_miniblock();
    --in_this_;
    value_ += least_ + bits_.next(width_);
  }

  // The widths of a block's miniblocks stand before it; of those that no value needs nothing is
  // written but the width.
  void begin_miniblock() {
    if (miniblock_ == widths_.size()) {
      least_ = static_cast<uint64_t>(zigzag());
      widths_ = take(bytes_, miniblocks_);
      miniblock_ = 0;
    }
    width_ = static_cast<uint8_t>(widths_[miniblock_++]);
    if (width_ > 64) throw Damaged("a page's differences have an unknown width");
    bits_ = BitReader(take(bytes_, in_miniblock_ / 8 * static_cast<uint64_t>(width_)));
    in_this_ = in_miniblock_;
  }

  std::string_view bytes_;
  uint64_t miniblocks_ = 0;
  uint64_t in_miniblock_ = 0;
  uint64_t left_ = 0;
  uint64_t value_ = 0;  // unsigned, since it wraps
  uint64_t least_ = 0;
  std::string_view widths_;
  size_t miniblock_ = 0;
  int width_ = 0;
  uint64_t in_this_ = 0;
  BitReader bits_{{}};
};

class DeltaIntegers : public ValueReader {
 public:
  DeltaIntegers(std::string_view bytes, Physical physical) : deltas_(bytes), physical_(physical) {}
  Scalar next() override {
    const int64_t value = deltas_.next();
    return of_integer(physical_ == Physical::int32 ? static_cast<int32_t>(value) : value);
  }

 private:
  Deltas deltas_;
  Physical physical_;
};

// The lengths of texts, read whole, since the texts stand after them. Bounded, since lengths that
// are all the same take no bytes.
constexpr uint64_t kMaxLengths = uint64_t{2} << 20;

std::vector<uint32_t> read_lengths(std::string_view& bytes, int64_t values) {
  Deltas deltas(bytes);
  if (deltas.size() > kMaxLengths)
    throw Damaged(
        fmt::format("a page has {} texts of differing lengths, and {} are read; write it "
                    "with smaller pages (pyarrow: data_page_size)",
                    deltas.size(), kMaxLengths));
  if (deltas.size() > static_cast<uint64_t>(values)) throw Damaged("a page has too many lengths");
  std::vector<uint32_t> lengths(deltas.size());
  for (uint32_t& length : lengths) {
    const int64_t value = deltas.next();
    if (value < 0 || value > static_cast<int64_t>(INT32_MAX)) throw Damaged("a text has no length");
    length = static_cast<uint32_t>(value);
  }
  bytes = deltas.rest();
  return lengths;
}

class DeltaLengthTexts : public ValueReader {
 public:
  DeltaLengthTexts(std::string_view bytes, int64_t values)
      : bytes_(bytes), lengths_(read_lengths(bytes_, values)) {}
  Scalar next() override {
    if (at_ == lengths_.size()) fail_short();
    return of_bytes(take(bytes_, lengths_[at_++]));
  }

 private:
  std::string_view bytes_;
  std::vector<uint32_t> lengths_;
  size_t at_ = 0;
};

// Each text begins as the one before it does, for so many bytes.
class DeltaTexts : public ValueReader {
 public:
  DeltaTexts(std::string_view bytes, int64_t values)
      : bytes_(bytes), prefixes_(read_lengths(bytes_, values)), suffixes_(bytes_, values) {}
  Scalar next() override {
    if (at_ == prefixes_.size()) fail_short();
    const uint32_t prefix = prefixes_[at_++];
    if (prefix > text_.size()) throw Damaged("a text begins with more than the one before it has");
    text_.resize(prefix);
    text_ += suffixes_.next().bytes;
    return of_bytes(text_);
  }

 private:
  std::string_view bytes_;
  std::vector<uint32_t> prefixes_;
  DeltaLengthTexts suffixes_;
  std::string text_;
  size_t at_ = 0;
};

// The first bytes of all values, then the second ones, and so on.
class SplitValues : public ValueReader {
 public:
  SplitValues(const SchemaElement& column, std::string_view bytes)
      : physical_(*column.physical),
        bytes_(bytes),
        value_(static_cast<size_t>(width_of(column)), '\0') {
    stride_ = bytes.size() / value_.size();
  }
  Scalar next() override {
    if (at_ == stride_) fail_short();
    for (size_t i = 0; i < value_.size(); ++i) value_[i] = bytes_[i * stride_ + at_];
    ++at_;
    return scalar_of(physical_, value_);
  }

 private:
  Physical physical_;
  std::string_view bytes_;
  std::string value_;
  size_t stride_ = 0;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<ValueReader> value_reader(Encoding encoding, const SchemaElement& column,
                                          std::string_view bytes, int64_t values,
                                          const std::vector<Scalar>* dictionary) {
  const Physical physical = *column.physical;
  const bool is_integer = physical == Physical::int32 || physical == Physical::int64;
  const bool is_text = physical == Physical::byte_array;
  switch (encoding) {
    case Encoding::plain:
      return std::make_unique<PlainValues>(column, bytes);
    case Encoding::plain_dictionary:
    case Encoding::rle_dictionary:
      return std::make_unique<DictionaryValues>(bytes, dictionary);
    case Encoding::rle:
      if (physical == Physical::boolean) return std::make_unique<RunLengthBooleans>(bytes);
      break;
    case Encoding::delta_binary_packed:
      if (is_integer) return std::make_unique<DeltaIntegers>(bytes, physical);
      break;
    case Encoding::delta_length_byte_array:
      if (is_text) return std::make_unique<DeltaLengthTexts>(bytes, values);
      break;
    case Encoding::delta_byte_array:
      if (is_text || physical == Physical::fixed_bytes)
        return std::make_unique<DeltaTexts>(bytes, values);
      break;
    case Encoding::byte_stream_split:
      if (physical != Physical::boolean && !is_text)
        return std::make_unique<SplitValues>(column, bytes);
      break;
    case Encoding::bit_packed:
      break;
  }
  throw Damaged(fmt::format("column '{}' has values of the encoding {}, which is not read",
                            column.name, static_cast<int32_t>(encoding)));
}

}  // namespace snug::text::parquet
