#include "text/source/record_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "text/source/conversion_advice.h"
#include "text/source/delimited_text.h"
#include "text/source/file_ending.h"
#include "text/source/parquet/parquet_text.h"

namespace snug::text {
namespace {

constexpr auto kTextEndings =
    std::to_array<std::string_view>({".json", ".jsonl", ".ndjson", ".txt"});

bool is_text(const std::string& contents) {
  return std::ranges::find(kTextEndings, contents) != kTextEndings.end();
}

// Null for text that is there already.
std::unique_ptr<ByteStream> made_stream(const std::string& path,
                                        std::span<const std::string> unread) {
  const FileEnding ending = file_ending(path);
  if (ending.contents == ".csv")
    return std::make_unique<DelimitedText>(open_stream(path), ',', path);
  if (ending.contents == ".tsv")
    return std::make_unique<DelimitedText>(open_stream(path), '\t', path);
  if (ending.contents == ".parquet" && ending.packing.empty())
    return std::make_unique<ParquetText>(path, unread);
  if (!is_text(ending.contents))
    throw base::UserError(
        "expected a data file named .json, .jsonl, .txt, .csv, .tsv or .parquet, of which all but "
        "the last may be packed (.gz, .zst); " +
            conversion_advice(path),
        {path, 0, 0});
  return ending.packing.empty() ? nullptr : open_stream(path);
}

}  // namespace

RecordFile::RecordFile(const std::string& path, std::span<const std::string> unread) {
  base::require_regular(path);  // opening a pipe would wait for its other end
  if (!std::filesystem::exists(path)) throw base::UserError("no such data file", {path, 0, 0});
  is_plain_text_ = file_ending(path).contents == ".txt";
  is_table_ = !is_text(file_ending(path).contents);
  stream_ = made_stream(path, unread);
  if (stream_ != nullptr) return;
  file_ = base::File::open_for_reading(path);
  file_bytes_ = file_->size();
}

int64_t RecordFile::read_at(int64_t offset, void* to, int64_t most) {
  if (file_) {
    const int64_t bytes = std::clamp<int64_t>(file_bytes_ - offset, 0, most);
    file_->read_at(offset, to, bytes);
    return bytes;
  }
  for (std::string piece; stream_ != nullptr && made_.size() < offset + most;) {
    if (stream_->next(piece))
      made_.append(piece.data(), static_cast<int64_t>(piece.size()));
    else
      stream_.reset();
  }
  const int64_t bytes = std::clamp<int64_t>(made_.size() - offset, 0, most);
  made_.read_at(offset, to, bytes);
  return bytes;
}

int64_t making_bytes(const std::string& path) {
  const FileEnding ending = file_ending(path);
  if (ending.contents == ".parquet") return ParquetText::kPageBytes + ParquetText::kMaxFooterBytes;
  if (ending.packing.empty() && is_text(ending.contents)) return 0;
  // A row of a table is held as cells and as JSON, in which a character can take six.
  const bool is_table = !is_text(ending.contents);
  return stream_bytes(path) + (is_table ? int64_t{8} * DelimitedText::kMaxRowBytes : 0);
}

}  // namespace snug::text
