// What the card of a data set (README.md, and .huggingface.yaml where it is there) says of its
// configurations: the list `configs` of the YAML between its first lines of ---.
//
//   configs:
//   - config_name: main
//     data_files:
//     - split: train
//       path: main/train-*
//   - config_name: socratic
//     data_dir: socratic
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace snug::formats {

struct CardSplit {
  std::string name;
  std::vector<std::string> patterns;  // below the configuration's folder
};

struct CardConfig {
  std::string name;
  bool is_default = false;
  std::string folder{};             // below that of the data set; empty: the same
  std::vector<CardSplit> splits{};  // empty: by the names of the files
  // What it says of how its files are read, which Snug does not obey: "sep", "header", ...
  std::vector<std::string> reading{};
};

// Nothing where there is no card, or it has no such list. Throws UserError, with file and line, for
// a card that is not YAML, or whose list is not as above.
std::vector<CardConfig> card_configs(const std::filesystem::path& folder);

}  // namespace snug::formats
