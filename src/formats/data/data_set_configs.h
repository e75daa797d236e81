// The configurations of a folder that is a data set, and the files of their splits.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/data/dataset_card.h"
#include "formats/data/named_splits.h"

namespace snug::formats {

struct ConfigSplit {
  DataSplit data;
  std::vector<std::string> missing{};  // patterns of the card that fit no file
  std::vector<std::string> unread{};   // files that are no data
};

class DataSetConfigs {
 public:
  explicit DataSetConfigs(const std::filesystem::path& folder);

  // Those of the card; of a set that the hub made Parquet files of, CONFIG/SPLIT/0000.parquet; or
  // else none.
  const std::vector<CardConfig>& all() const { return configs_; }
  bool has_card() const { return has_card_; }
  // All files of the folder, sorted; with hidden ones where the card names such.
  const std::vector<std::string>& files() const { return files_; }
  bool has_folder(const std::string& name) const;

  std::vector<ConfigSplit> splits_of(const CardConfig& config) const;

 private:
  std::vector<CardConfig> converted_configs() const;
  ConfigSplit split_by_patterns(const CardSplit& split, const std::string& folder) const;

  std::vector<CardConfig> configs_;
  bool has_card_ = false;
  std::vector<std::string> files_;
};

}  // namespace snug::formats
