// From an entry of `data` or `eval_data` to the files that it stands for:
//   a file;
//   a pattern of paths (path_pattern.h), of whose files those of the commonest kind are taken;
//   a folder, as a data set with configurations and splits (data_set_folder.h);
//   ORG/NAME[@REVISION], a data set in the local cache of the Hugging Face hub, or
//   hf://datasets/ORG/NAME[@REVISION][/PATTERN].
// The first of these that is there is taken. Nothing is downloaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/data/data_set_folder.h"
#include "formats/recipe/data_entry.h"

namespace snug::formats {

struct Recipe;

struct DataFiles {
  std::vector<std::string> files;  // at least one, and all are there
  int64_t limit = 0;               // of the entry, or of its split ("train[:1000]"); 0: all
  // For the log and the identity of a run: "openai/gsm8k, configuration main, split train, commit
  // 0123abc". The path alone where there is no more to say.
  std::string description;
  std::vector<std::string> notes;  // what was left out, and what is missing, for the log
};

// Throws UserError, with what to do, where the entry leads to no file that can be read, or may
// lead to others than were meant.
DataFiles data_files(const DataEntry& entry, DataUse use = DataUse::training);

// The same for an entry of a recipe's key, which the error names.
DataFiles data_files(const Recipe& recipe, std::string_view key, const DataEntry& entry,
                     DataUse use);

// What an entry is called: its name, or the last part of its path that is no pattern, without
// ending and revision.
std::string data_name(const DataEntry& entry);

// Whether a path leads to a file or folder, or a pattern to a file. What is there may still be none
// that data_files accepts.
bool is_data_there(const std::string& path);

// Whether the cache of the hub has a data set of this name.
bool is_data_in_hub_cache(const std::string& path);

}  // namespace snug::formats
