// The entries of a column, one after the other: a value, or a null, with the levels that say where
// in a record it stands (Dremel: definition and repetition levels). One page is held at a time, and
// the dictionary of the column chunk. Throws Damaged.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "text/source/parquet/levels.h"
#include "text/source/parquet/metadata.h"
#include "text/source/parquet/values.h"

namespace snug::text::parquet {

// What the pages that are held at once may take, of all columns together.
class PageMemory {
 public:
  explicit PageMemory(int64_t most) : most_(most) {}
  // A column holds `after` bytes in place of `before`.
  void change(int64_t before, int64_t after);

 private:
  int64_t most_;
  int64_t held_ = 0;
};

struct Leaf {
  SchemaElement column;
  int max_definition = 0;
  int max_repetition = 0;
};

class ColumnReader {
 public:
  // What is given must outlive it.
  ColumnReader(const base::File& file, const Leaf& leaf, PageMemory& memory)
      : file_(file), leaf_(leaf), memory_(memory) {}

  // Goes to the first entry of a row group's chunk.
  void begin(const ColumnChunk& chunk);

  // Of the entry that comes next; at the end of the chunk 0, as of another record.
  int repetition();
  int definition();
  bool is_at_end() { return !has_entry(); }
  // Takes the entry; requires that it is a value (definition() is the leaf's) or a null.
  Scalar take_value();
  void take_null();

 private:
  bool has_entry();
  void read_page();
  void read_dictionary(const PageHeader& header, std::string_view bytes);
  void begin_values(const PageHeader& header, std::string_view bytes);
  PageHeader read_header();
  std::string unpacked(const PageHeader& header, int64_t unpacked_prefix);
  void count_memory();

  const base::File& file_;
  const Leaf& leaf_;
  PageMemory& memory_;
  Codec codec_ = Codec::none;
  int64_t at_ = 0;  // of the file
  int64_t end_ = 0;
  int64_t chunk_left_ = 0;  // entries
  int64_t page_left_ = 0;
  int64_t counted_ = 0;     // bytes, of memory_
  bool is_loaded_ = false;  // the levels of the next entry
  int repetition_ = 0;
  int definition_ = 0;
  std::string page_;
  std::string dictionary_page_;
  std::vector<Scalar> dictionary_;
  bool has_dictionary_ = false;
  RunReader repetitions_;
  RunReader definitions_;
  std::unique_ptr<ValueReader> values_;
};

}  // namespace snug::text::parquet
