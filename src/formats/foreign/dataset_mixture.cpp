#include "formats/foreign/dataset_mixture.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "formats/foreign/dataset_names.h"

namespace snug::formats {
namespace {

// The one split of an entry, where it is a part in percent.
std::vector<SplitPart> percent_of(const ToolEntry& entry) {
  const std::string split = entry.text("split");
  if (split.empty()) return {};
  try {
    std::vector<SplitPart> parts = split_parts(split);
    if (parts.size() == 1 && parts.front().is_percent && !parts.front().is_whole) return parts;
  } catch (const base::UserError&) {
    // It is reported where the entry is read.
  }
  return {};
}

bool is_same_but_for_split(const ToolEntry& one, const ToolEntry& other) {
  for (const char* key : {"path", "source", "name", "subset", "data_files", "_component_"})
    if (one.text(key) != other.text(key)) return false;
  return true;
}

}  // namespace

Mixture read_mixture(const Written& written, const std::string& file) {
  Mixture mixture;
  Written list{written.name + ".datasets", {}, true, written.where};
  const YAML::Node map = YAML::Load(written.items.front());
  for (const auto& each : map) {
    const std::string key = each.first.Scalar();
    if (key == "datasets") {
      list.items = tool_items(each.second);
    } else if (key == "test_split_size" && each.second.IsScalar()) {
      mixture.test_size = each.second.Scalar();
    } else if (key != "seed" && !each.second.IsNull()) {
      throw base::UserError(
          fmt::format("'{}.{}' is unknown; expected datasets, seed or test_split_size",
                      written.name, key),
          written.where);
    }
  }
  mixture.datasets = read_dataset_list(tool_entries(list), file, "");
  for (DataEntry& entry : mixture.datasets.entries)
    if (entry.weight > 0) entry.repeats = std::exchange(entry.weight, 0);
  return mixture;
}

double held_out_share(std::vector<ToolEntry>& training, const std::vector<ToolEntry>& evaluation) {
  if (training.size() != 1 || evaluation.size() != 1 ||
      !is_same_but_for_split(training.front(), evaluation.front()))
    return 0;
  const std::vector<SplitPart> first = percent_of(training.front());
  const std::vector<SplitPart> rest = percent_of(evaluation.front());
  const bool are_parts = first.size() == 1 && rest.size() == 1 && first[0].name == rest[0].name &&
                         first[0].from == 0 && rest[0].to == 0 && first[0].to == rest[0].from;
  if (!are_parts) return 0;
  for (Written& key : training.front().keys)
    if (key.name == "split") key.items = {first[0].name};
  return static_cast<double>(100 - first[0].to) / 100;
}

}  // namespace snug::formats
