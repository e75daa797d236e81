// What the name of a data file says that it holds.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/lower_case.h"

namespace snug::base {

struct FileEnding {
  std::string contents;  // ".jsonl" of train.jsonl.gz, in small letters
  std::string packing;   // ".gz", ".zst" or empty
};

inline FileEnding file_ending(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).filename();
  FileEnding ending;
  const auto last = [&] { return lower_case(name.extension().string()); };
  if (last() == ".gz" || last() == ".zst") {
    ending.packing = last();
    name = name.stem();
  }
  ending.contents = last();
  return ending;
}

// Files of one kind can be read one after another as one set.
enum class DataFileKind { json, table, parquet, text };

struct DataFileEnding {
  std::string_view contents;
  DataFileKind kind;
};

// Those that are read; where a folder has equally many of two, the first is taken.
inline constexpr std::array kDataFileEndings{
    DataFileEnding{".parquet", DataFileKind::parquet}, DataFileEnding{".jsonl", DataFileKind::json},
    DataFileEnding{".json", DataFileKind::json},       DataFileEnding{".csv", DataFileKind::table},
    DataFileEnding{".txt", DataFileKind::text},        DataFileEnding{".tsv", DataFileKind::table},
    DataFileEnding{".ndjson", DataFileKind::json}};

// Null for a file of an ending that is not read.
inline const DataFileEnding* data_file_ending(const std::string& path) {
  const FileEnding ending = file_ending(path);
  if (ending.contents == ".parquet" && !ending.packing.empty()) return nullptr;
  const auto* found = std::ranges::find(kDataFileEndings, std::string_view(ending.contents),
                                        &DataFileEnding::contents);
  return found == kDataFileEndings.end() ? nullptr : found;
}

}  // namespace snug::base
