// What the name of a data file says that it holds.
#pragma once

#include <filesystem>
#include <string>

#include "base/lower_case.h"

namespace snug::text {

struct FileEnding {
  std::string contents;  // ".jsonl" of train.jsonl.gz, in small letters
  std::string packing;   // ".gz", ".zst" or empty
};

inline FileEnding file_ending(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).filename();
  FileEnding ending;
  const auto last = [&] { return base::lower_case(name.extension().string()); };
  if (last() == ".gz" || last() == ".zst") {
    ending.packing = last();
    name = name.stem();
  }
  ending.contents = last();
  return ending;
}

}  // namespace snug::text
