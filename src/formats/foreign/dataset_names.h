// What other tools write in a data set's name and in its split, next to the name itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/recipe/data_entry.h"
#include "formats/recipe/recipe_keys.h"

namespace snug::formats {

// Whether a file or folder has this path.
bool is_on_disk(const std::string& path);

// ms-swift: [hf::|ms::]PATH[:SUBSET[/SUBSET...]][#COUNT]. One entry for each subset. What is there
// as a file is the path as a whole. Throws UserError for a count that is none.
std::vector<DataEntry> entries_named(const std::string& name);

// datasets: NAME, NAME[from:to] of records or of percent, and several with + between them.
struct SplitPart {
  std::string name;
  bool is_whole = true;
  bool is_percent = false;
  int64_t from = 0;
  int64_t to = 0;  // 0: to the end
};
// Throws UserError for a text of another form.
std::vector<SplitPart> split_parts(const std::string& split);

// Sets the entry's split, and its limit or, of a share, repeats, where the split asks for its first
// records. Returns a note about a share, which is another one in each epoch. Throws UserError for a
// part that begins later.
std::string take_split(DataEntry& entry, const std::string& split);
// The same of a written split, with its place in the note, which goes to `notes`, and in the error.
void take_split(DataEntry& entry, const Written& split, std::vector<std::string>& notes);

// The path of a data set of the hub or of a folder, or of files below it.
std::string data_set_path(const std::string& path, const std::string& revision,
                          const std::string& below);

}  // namespace snug::formats
