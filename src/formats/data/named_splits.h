// The splits of a data set (train, validation, test) as the names of its files and folders tell of
// them, by the rules of the `datasets` library.
#pragma once

#include <string>
#include <vector>

namespace snug::formats {

struct DataSplit {
  std::string name;
  std::vector<std::string> files;
};

// The first rule that fits any file holds for all; files that it does not fit are in no split:
//   data/NAME-00000-of-00002.ENDING       is of the split NAME, whatever the name
//   a folder whose name has a split's word: train, training; validation, valid, dev, val; test,
//   testing, eval, evaluation; the word stands between the ends of the name and - . _ 0-9 or spaces
//   a file that begins with such a word, or has it in its name
//   else all files are of the split train
// `files`: sorted paths below the folder of the data set.
std::vector<DataSplit> named_splits(const std::vector<std::string>& files);

// Files that are numbered parts of one: data/train-00000-of-00005.parquet.
struct NumberedParts {
  std::string name;  // up to the number
  int whole = 0;
  int present = 0;
};
std::vector<NumberedParts> numbered_parts(const std::vector<std::string>& files);

}  // namespace snug::formats
