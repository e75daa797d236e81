// One source of records, as a recipe names it: where its files are, what is taken of them, and how
// its records are read where they are not read as the recipe says for all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/recipe/choices.h"

namespace snug::formats {

struct DataEntry {
  // A file, a folder of files, a pattern of files (* ? [..] **), or org/name[@revision] in the
  // local cache of the Hugging Face hub.
  std::string path;
  // Of a data set of the hub, or of a folder that is laid out like one; empty: the only one, or the
  // one that is called default.
  std::string config{};
  // The part of such a data set; empty: train.
  std::string split{};
  // Of an evaluation set, for its metrics; empty: from the path.
  std::string name{};
  // The share of an epoch, in proportion to the other entries' weights; 0: none is given.
  double weight = 0;
  // How often an epoch takes each record; a part of 1 takes that part of the records.
  double repeats = 1;
  int64_t limit = 0;  // of the records that are read, from the first; 0: all
  // As the recipe's keys of these names, for this entry alone.
  DataFormat data_format = DataFormat::automatic;
  std::vector<std::string> fields{};
  std::vector<std::string> roles{};
  std::vector<std::string> ignore_fields{};

  bool operator==(const DataEntry&) const = default;
};

}  // namespace snug::formats
