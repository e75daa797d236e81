#include "text/source/parquet/column.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "text/source/parquet/compact.h"
#include "text/source/parquet/unpack_page.h"

namespace snug::text::parquet {
namespace {

constexpr int64_t kFirstHeaderBytes = 256;
constexpr int64_t kMaxHeaderBytes = int64_t{1} << 20;  // with the least and largest value in it

int level_bits(int most) { return static_cast<int>(std::bit_width(static_cast<unsigned>(most))); }

// Takes the levels that stand at the beginning of a page, after their length.
RunReader take_levels(std::string_view& bytes, int most) {
  if (most == 0) return {};
  uint32_t size = 0;
  if (bytes.size() < sizeof(size)) throw Damaged("a page ends within its levels");
  std::memcpy(&size, bytes.data(), sizeof(size));
  bytes.remove_prefix(sizeof(size));
  if (size > bytes.size()) throw Damaged("a page ends within its levels");
  const RunReader levels(bytes.substr(0, size), level_bits(most));
  bytes.remove_prefix(size);
  return levels;
}

}  // namespace

void PageMemory::change(int64_t before, int64_t after) {
  held_ += after - before;
  if (held_ > most_)
    throw Damaged(fmt::format(
        "its pages take more than {} MiB at once, of all columns together, which are not read; "
        "write it with smaller pages (pyarrow: data_page_size), or name columns that need not be "
        "read in ignore_fields",
        most_ >> 20));
}

void ColumnReader::begin(const ColumnChunk& chunk) {
  codec_ = chunk.codec;
  at_ = chunk.begin;
  end_ = chunk.begin + chunk.bytes;
  chunk_left_ = chunk.values;
  page_left_ = 0;
  is_loaded_ = false;
  has_dictionary_ = false;
  dictionary_.clear();
  dictionary_page_.clear();
  values_.reset();
}

bool ColumnReader::has_entry() {
  if (is_loaded_) return true;
  if (chunk_left_ == 0) return false;
  while (page_left_ == 0) read_page();
  repetition_ = leaf_.max_repetition > 0 ? static_cast<int>(repetitions_.next()) : 0;
  definition_ = leaf_.max_definition > 0 ? static_cast<int>(definitions_.next()) : 0;
  if (repetition_ > leaf_.max_repetition || definition_ > leaf_.max_definition)
    throw Damaged("a page has a level that its column has not");
  is_loaded_ = true;
  return true;
}

int ColumnReader::repetition() { return has_entry() ? repetition_ : 0; }

int ColumnReader::definition() {
  if (!has_entry()) throw Damaged("a column has fewer values than the file has rows");
  return definition_;
}

Scalar ColumnReader::take_value() {
  const Scalar value = values_->next();
  take_null();
  return value;
}

void ColumnReader::take_null() {
  if (!has_entry()) throw Damaged("a column has fewer values than the file has rows");
  is_loaded_ = false;
  --page_left_;
  --chunk_left_;
}

PageHeader ColumnReader::read_header() {
  std::string bytes;
  for (int64_t most = kFirstHeaderBytes;; most *= 8) {
    const int64_t there = std::min(most, end_ - at_);
    if (there <= 0) throw Damaged("a column ends before its values do");
    bytes.resize(static_cast<size_t>(there));
    file_.read_at(at_, bytes.data(), there);
    try {
      return parse_page_header(bytes);
    } catch (const CutOff&) {
      if (there == end_ - at_ || most > kMaxHeaderBytes) throw;
    }
  }
}

// The page's bytes, of which the first ones are not packed.
std::string ColumnReader::unpacked(const PageHeader& header, int64_t prefix) {
  if (header.packed_bytes > end_ - at_) throw Damaged("a page goes on after its column");
  if (prefix > header.packed_bytes || prefix > header.bytes)
    throw Damaged("a page ends within its levels");
  memory_.change(counted_, counted_ + header.bytes + header.packed_bytes);
  counted_ += header.bytes + header.packed_bytes;
  std::string packed(static_cast<size_t>(header.packed_bytes), '\0');
  file_.read_at(at_, packed.data(), header.packed_bytes);
  at_ += header.packed_bytes;
  if (!header.is_packed || (codec_ == Codec::none && header.bytes == header.packed_bytes)) {
    if (header.bytes != header.packed_bytes) throw Damaged("a page has another size than it says");
    return packed;
  }
  std::string page(static_cast<size_t>(header.bytes), '\0');
  const auto begin = static_cast<size_t>(prefix);
  std::copy_n(packed.begin(), prefix, page.begin());
  if (page.size() > begin)
    unpack_page(codec_, std::string_view(packed).substr(begin), std::span(page).subspan(begin));
  return page;
}

void ColumnReader::count_memory() {
  const auto holds = static_cast<int64_t>(page_.capacity() + dictionary_page_.capacity() +
                                          dictionary_.capacity() * sizeof(Scalar));
  memory_.change(counted_, holds);
  counted_ = holds;
}

void ColumnReader::read_page() {
  const PageHeader header = read_header();
  at_ += header.header_bytes;
  values_.reset();
  switch (header.type) {
    case PageHeader::Type::dictionary:
      if (has_dictionary_) throw Damaged("a column has two dictionaries");
      dictionary_page_ = unpacked(header, 0);
      read_dictionary(header, dictionary_page_);
      break;
    case PageHeader::Type::data: {
      if (header.level_encoding != Encoding::rle)
        throw Damaged("its levels have an encoding of 2013 (BIT_PACKED), which is not read");
      page_ = unpacked(header, 0);
      std::string_view bytes = page_;
      repetitions_ = take_levels(bytes, leaf_.max_repetition);
      definitions_ = take_levels(bytes, leaf_.max_definition);
      begin_values(header, bytes);
      break;
    }
    case PageHeader::Type::data_v2: {
      const int64_t prefix = int64_t{header.repetition_bytes} + header.definition_bytes;
      page_ = unpacked(header, prefix);
      const std::string_view bytes = page_;
      const auto repetition = static_cast<size_t>(header.repetition_bytes);
      repetitions_ = RunReader(bytes.substr(0, repetition), level_bits(leaf_.max_repetition));
      definitions_ =
          RunReader(bytes.substr(repetition, static_cast<size_t>(header.definition_bytes)),
                    level_bits(leaf_.max_definition));
      begin_values(header, bytes.substr(static_cast<size_t>(prefix)));
      break;
    }
    case PageHeader::Type::index:
      at_ += header.packed_bytes;
      break;
    default:
      throw Damaged("it has a page of an unknown sort");
  }
  count_memory();
}

void ColumnReader::read_dictionary(const PageHeader& header, std::string_view bytes) {
  if (header.encoding != Encoding::plain && header.encoding != Encoding::plain_dictionary)
    throw Damaged("a dictionary has an encoding that is not read");
  const auto reader = value_reader(Encoding::plain, leaf_.column, bytes, header.values, nullptr);
  if (header.values > header.bytes * int64_t{8})
    throw Damaged("a dictionary ends before its values");
  const auto holds = static_cast<int64_t>(sizeof(Scalar)) * header.values;
  memory_.change(0, holds);
  counted_ += holds;
  dictionary_.clear();
  dictionary_.reserve(static_cast<size_t>(header.values));
  for (int32_t i = 0; i < header.values; ++i) dictionary_.push_back(reader->next());
  has_dictionary_ = true;
}

void ColumnReader::begin_values(const PageHeader& header, std::string_view bytes) {
  if (header.values > chunk_left_) throw Damaged("a page has more values than its column");
  page_left_ = header.values;
  values_ = value_reader(header.encoding, leaf_.column, bytes, header.values,
                         has_dictionary_ ? &dictionary_ : nullptr);
}

}  // namespace snug::text::parquet
