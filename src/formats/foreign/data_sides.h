// The keys of a recipe while its words of data are read, and what they have become so far.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/foreign/dataset_list.h"
#include "formats/foreign/tool_config.h"
#include "formats/recipe/data_entry.h"

namespace snug::formats {

// Entries of `data` or of `eval_data`.
struct DataSide {
  std::string_view key;
  std::vector<DataEntry> entries{};
  std::optional<Written> said{};  // the first key that they come from
};

class DataSides {
 public:
  // All that it is given must outlive it; see take_data_words.
  DataSides(std::vector<Written>& all, const std::vector<Written>& others,
            const std::string& recipe_file)
      : file(recipe_file), all_(all), others_(others) {}

  // Takes a key out of the recipe; nothing where it is not there, or has no value.
  std::optional<Written> take(std::string_view name);
  // Those whose names begin so.
  std::vector<Written> take_prefixed(std::string_view prefix);
  // Nothing is taken: null where it is not there, or has no value.
  const Written* find(std::string_view name) const;
  // The value of a key that stays, or that the recipe's file has; empty where there is none.
  std::string value_of(std::string_view name) const;

  // A key that changes nothing, and why.
  void note(const Written& written, std::string_view why);
  void add(DataSide& side, const Written& said, ToolDatasets datasets);
  // A key of the recipe.
  void set(const std::string& key, const std::string& value, const Written& said);
  // Sets an entry's split. Mistakes have the place of `said`.
  void set_split(DataEntry& entry, const Written& said, const std::string& split);

  // What was read, as keys of a recipe.
  ToolConfig finish();

  DataSide data{"data"};
  DataSide evaluation{"eval_data"};
  std::string text_field;  // of records that are texts; empty: text
  ToolConfig config;       // notes, mistakes and keys next to the entries
  const std::string& file;

 private:
  void finish(DataSide& side);

  std::vector<Written>& all_;
  const std::vector<Written>& others_;
};

// The texts of a list, or of one text with commas.
std::vector<std::string> comma_items(const Written& written);

// A number above 0 that a key says.
double share_of(const Written& written);

// What is read, in this order: lists of data sets; names of data sets; and what is said of all of
// them, which changes the entries of the former.
void take_lists(DataSides& sides);
void take_names(DataSides& sides);
void take_shares(DataSides& sides);

}  // namespace snug::formats
