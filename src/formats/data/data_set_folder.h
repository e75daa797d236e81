// A folder as a data set, as the `datasets` library takes it: with configurations and splits that
// its card names, or else its files' names. Differences: docs/data.md.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/data/split_choice.h"

namespace snug::formats {

// What a source of records is for: where no split is named, training takes train, and evaluation
// validation, test, or the only one.
enum class DataUse { training, evaluation };

struct DataSetRequest {
  std::string name;  // in messages
  std::filesystem::path folder;
  std::string config{};
  SplitChoice split{};
  DataUse use = DataUse::training;
  std::string download{};  // the command that fetches it from the hub; empty for a user's folder
};

struct DataSetPart {
  std::string config;  // empty where there are none
  std::vector<std::string> splits;
  std::vector<std::string> files;  // below the folder; in the order of the splits
  // What was left out, and what is missing, for the log.
  std::vector<std::string> notes;
};

// Throws UserError where there is no such configuration or split, with those that there are; where
// files of it are missing; and where none is of a kind that is read.
DataSetPart data_set_part(const DataSetRequest& request);

}  // namespace snug::formats
