// A data file as the text that records are read from, whatever it is kept as: JSON, JSON lines and
// plain text as they are, packed files (.gz, .zst) unpacked, tables (.csv, .tsv, .parquet) as JSON
// lines. What has to be made is made once, as far as it is asked for, and kept in a file without a
// name (base/spill_file.h), so that any place of it can be read again. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/file.h"
#include "base/spill_file.h"
#include "text/source/byte_stream.h"

namespace snug::text {

class RecordFile {
 public:
  // Columns of Parquet called as in `unread` are not read: their values are null. Throws UserError
  // where there is no such file, for a name of no ending that is read, with what to do, and as the
  // streams do for a file that is damaged.
  explicit RecordFile(const std::string& path, std::span<const std::string> unread = {});

  bool is_plain_text() const { return is_plain_text_; }
  // Whether its text is the rows of a table, of which some may say why they cannot be read
  // (json_text.h).
  bool is_table() const { return is_table_; }

  // Reads `most` bytes from `offset`, fewer at the end. Returns how many.
  int64_t read_at(int64_t offset, void* to, int64_t most);

 private:
  std::optional<base::File> file_;  // of text that is there already
  int64_t file_bytes_ = 0;
  std::unique_ptr<ByteStream> stream_;  // of text that is made
  base::SpillFile made_;
  bool is_plain_text_ = false;
  bool is_table_ = false;
};

// What making the text holds in memory at most, beyond the text's own reading; 0 for text that is
// there already.
int64_t making_bytes(const std::string& path);

}  // namespace snug::text
