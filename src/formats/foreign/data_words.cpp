#include "formats/foreign/data_words.h"

#include <algorithm>
#include <array>

#include "formats/foreign/data_sides.h"

namespace snug::formats {

bool holds_data_sets(std::string_view name) {
  constexpr auto kLists = std::to_array<std::string_view>(
      {"datasets", "test_datasets", "pretraining_dataset", "dataset_mixture", "dataset_val"});
  return std::ranges::find(kLists, name) != kLists.end();
}

ToolConfig take_data_words(std::vector<Written>& all, const std::vector<Written>& others,
                           const std::string& file) {
  DataSides sides(all, others, file);
  take_lists(sides);
  take_names(sides);
  take_shares(sides);
  return sides.finish();
}

}  // namespace snug::formats
