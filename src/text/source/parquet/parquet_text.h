// The rows of a Parquet file as JSON lines. Read are flat and nested columns (objects, lists,
// maps), the encodings PLAIN, dictionary, RLE, DELTA_* and BYTE_STREAM_SPLIT, pages of version 1
// and 2, packed by snappy, zstd, gzip or not at all. What a column of bytes
// that are no UTF-8, or of INT96, holds is no text: its value is {"bytes": SIZE}. Numbers that JSON
// has not (NaN, infinity) are {"number": "nan"}, dates, times and decimals {"integer": as stored},
// so that nothing learns them for text.
//
// In memory are one page of each column and its dictionary, kPageBytes at most of all together, and
// the footer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "text/source/byte_stream.h"
#include "text/source/parquet/column.h"
#include "text/source/parquet/metadata.h"
#include "text/source/parquet/schema.h"

namespace snug::text {

class ParquetText : public ByteStream {
 public:
  static constexpr int64_t kPageBytes = int64_t{64} << 20;
  static constexpr int64_t kMaxFooterBytes = int64_t{16} << 20;

  // Reads the footer. Of columns called as in `unread` no page is held, and their values are null.
  // Throws UserError, as next() does, for what is no Parquet file, is damaged or encrypted, or has
  // something that is not read.
  explicit ParquetText(const std::string& path, std::span<const std::string> unread = {});

  bool next(std::string& piece) override;

 private:
  void read_footer();
  void open_columns(std::span<const std::string> unread);
  bool next_group();
  void write_object(const parquet::Node& node, std::string& text);
  void write_node(const parquet::Node& node, std::string& text);
  void write_entries(const parquet::Node& node, std::string& text);
  void write_value(const parquet::Leaf& leaf, parquet::ColumnReader& column, std::string& text);
  void take_nulls(const parquet::Node& node);

  std::string path_;
  base::File file_;
  parquet::FileMetadata metadata_;
  parquet::Schema schema_;
  parquet::PageMemory memory_{kPageBytes};
  std::vector<std::unique_ptr<parquet::ColumnReader>> columns_;  // null: unread
  size_t group_ = 0;                                             // that comes next
  int64_t rows_left_ = 0;                                        // of the one that is read
};

}  // namespace snug::text
