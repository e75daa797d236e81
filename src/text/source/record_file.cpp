#include "text/source/record_file.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file_ending.h"
#include "text/source/conversion_advice.h"
#include "text/source/delimited_text.h"
#include "text/source/parquet/parquet_text.h"

namespace snug::text {
namespace {

// Null for text that is there already.
std::unique_ptr<ByteStream> made_stream(const std::string& path,
                                        std::span<const std::string> unread) {
  const base::FileEnding ending = base::file_ending(path);
  const base::DataFileEnding* data = base::data_file_ending(path);
  if (data == nullptr)
    throw base::UserError(
        "expected a data file named .json, .jsonl, .txt, .csv, .tsv or .parquet, of which all but "
        "the last may be packed (.gz, .zst); " +
            conversion_advice(path),
        {path, 0, 0});
  if (data->kind == base::DataFileKind::parquet) return std::make_unique<ParquetText>(path, unread);
  if (data->kind == base::DataFileKind::table)
    return std::make_unique<DelimitedText>(open_stream(path),
                                           ending.contents == ".csv" ? ',' : '\t', path);
  return ending.packing.empty() ? nullptr : open_stream(path);
}

}  // namespace

RecordFile::RecordFile(const std::string& path, std::span<const std::string> unread) {
  base::require_regular(path);  // opening a pipe would wait for its other end
  if (!std::filesystem::exists(path)) throw base::UserError("no such data file", {path, 0, 0});
  const base::DataFileEnding* data = base::data_file_ending(path);
  is_plain_text_ = data != nullptr && data->kind == base::DataFileKind::text;
  is_table_ = data != nullptr && (data->kind == base::DataFileKind::table ||
                                  data->kind == base::DataFileKind::parquet);
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
  const base::DataFileEnding* data = base::data_file_ending(path);
  if (data != nullptr && data->kind == base::DataFileKind::parquet)
    return ParquetText::kPageBytes + ParquetText::kMaxFooterBytes;
  const bool is_table = data == nullptr || data->kind == base::DataFileKind::table;
  if (!is_table && base::file_ending(path).packing.empty()) return 0;
  // A row of a table is held as cells and as JSON, in which a character can take six.
  return stream_bytes(path) + (is_table ? int64_t{8} * DelimitedText::kMaxRowBytes : 0);
}

}  // namespace snug::text
