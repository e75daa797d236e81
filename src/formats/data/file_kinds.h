// Which of the files of a folder are data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

// Whether a file is of an ending that is read, and not one that describes a data set or a model
// (dataset_info.json, config.json, ...) unless the pattern that fits it ends with its name.
bool is_data_file(const std::string& path, std::string_view pattern = "");

struct KindChoice {
  std::vector<std::string> files;
  std::vector<std::string> others;
};

// Of the files the ones of one kind (JSON, tables, Parquet, text): that of the commonest ending,
// as in the `datasets` library; so a notes.txt next to the records is not learned. All must be
// data files.
KindChoice commonest_kind(const std::vector<std::string>& files);

// "a.md, b.md and 3 more".
std::string listed(const std::vector<std::string>& names);

}  // namespace snug::formats
