// The headers of a Parquet file: what its footer says of schema and column chunks, and what stands
// before each page (parquet-format, parquet.thrift).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug::text::parquet {

enum class Physical : int32_t {
  boolean = 0,
  int32 = 1,
  int64 = 2,
  int96 = 3,
  float32 = 4,
  float64 = 5,
  byte_array = 6,
  fixed_bytes = 7,
};

enum class Repetition : int32_t { required = 0, optional = 1, repeated = 2 };

// What a column's bytes mean, or how a group repeats.
enum class Meaning : uint8_t { none, text, list, map, unsigned_integer, other };

struct SchemaElement {
  std::optional<Physical> physical{};  // of a leaf
  int32_t width = 0;                   // bytes of fixed_bytes
  Repetition repetition = Repetition::required;
  std::string name{};
  int32_t children = 0;
  Meaning meaning = Meaning::none;
};

enum class Codec : int32_t {
  none = 0,
  snappy = 1,
  gzip = 2,
  lzo = 3,
  brotli = 4,
  lz4 = 5,
  zstd = 6,
  lz4_raw = 7
};

struct ColumnChunk {
  Codec codec = Codec::none;
  int64_t values = 0;
  int64_t begin = 0;  // bytes of the file
  int64_t bytes = 0;
};

struct RowGroup {
  std::vector<ColumnChunk> columns{};  // one for each leaf of the schema
  int64_t rows = 0;
};

struct FileMetadata {
  std::vector<SchemaElement> schema{};  // a tree, each node before its children
  std::vector<RowGroup> groups{};
  int64_t rows = 0;
  bool is_encrypted = false;
};

// Throws Damaged (compact.h), also for offsets that are not those of a file of so many bytes.
FileMetadata parse_metadata(std::string_view footer, int64_t file_bytes);

enum class Encoding : int32_t {
  plain = 0,
  plain_dictionary = 2,
  rle = 3,
  bit_packed = 4,
  delta_binary_packed = 5,
  delta_length_byte_array = 6,
  delta_byte_array = 7,
  rle_dictionary = 8,
  byte_stream_split = 9,
};

struct PageHeader {
  enum class Type : int32_t { data = 0, index = 1, dictionary = 2, data_v2 = 3 };
  Type type = Type::data;
  int32_t bytes = 0;         // unpacked
  int32_t packed_bytes = 0;  // that follow the header
  int32_t values = 0;        // with those that are null
  Encoding encoding = Encoding::plain;
  Encoding level_encoding = Encoding::rle;
  // data_v2: bytes of levels, which come before the values and are never packed.
  int32_t definition_bytes = 0;
  int32_t repetition_bytes = 0;
  bool is_packed = true;
  int64_t header_bytes = 0;
};
// Throws CutOff where the header goes on after `bytes`, Damaged for what is none.
PageHeader parse_page_header(std::string_view bytes);

}  // namespace snug::text::parquet
