// Names of data sets: of LLaMA-Factory's dataset_info.json, of the hub with a subset and a count
// (ms-swift) or with configuration and splits (TRL, examples of transformers), and the alignment
// handbook's map of names.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/lower_case.h"
#include "formats/foreign/data_sides.h"
#include "formats/foreign/dataset_info.h"
#include "formats/foreign/dataset_names.h"
#include "formats/foreign/tool_entries.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

// The file that says what names stand for: in dataset_dir, or in `data`, here or next to the
// recipe. Null where names are paths.
std::unique_ptr<DatasetInfo> info_of(const DataSides& sides,
                                     const std::vector<std::string>& names) {
  const std::string said = sides.value_of("dataset_dir");
  if (said.starts_with("REMOTE:") || said == "ONLINE")
    base::throw_user_error(
        "'dataset_dir' is {}, which is on another machine: download it, and say dataset_dir: "
        "FOLDER, the one with dataset_info.json",
        said);
  const std::string folder = said.empty() ? "data" : said;
  const fs::path beside = fs::path(sides.file).parent_path() / folder;
  for (const std::string& each : {folder, beside.string()}) {
    if (!has_dataset_info(each)) continue;
    auto info = std::make_unique<DatasetInfo>(each);
    const bool is_meant =
        std::ranges::any_of(names, [&](const std::string& name) { return info->has(name); });
    if (is_meant || !said.empty()) return info;
  }
  if (!said.empty() && !std::ranges::all_of(names, is_on_disk))
    base::throw_user_error(
        "'dataset_dir' is {0}, but there is no {0}/dataset_info.json, which says what the names of "
        "data sets stand for",
        said);
  return nullptr;
}

ToolDatasets looked_up(const DataSides& sides, const DatasetInfo& info,
                       const std::vector<std::string>& names, bool are_sets) {
  const bool learns_texts = base::lower_case(sides.value_of("stage")) == "pt";
  ToolDatasets datasets;
  for (const std::string& name : names) {
    if (!info.has(name) && is_on_disk(name)) {
      datasets.entries.push_back({.path = name});
    } else if (auto entry = info.entry(name, learns_texts, datasets.said)) {
      if (are_sets) entry->name = name;
      datasets.entries.push_back(std::move(*entry));
    }
  }
  return datasets;
}

// Whether a name has more in it than a path.
bool has_marks(const std::string& item) {
  return !item.starts_with('{') && !is_on_disk(item) && item.find("://") == std::string::npos &&
         item.find_first_of("#:") != std::string::npos;
}

// Leaves keys that hold paths as they are.
void read_names(DataSides& sides, DataSide& side, std::string_view key) {
  const Written* found = sides.find(key);
  if (found == nullptr) return;
  const std::vector<std::string> names = comma_items(*found);
  ToolDatasets datasets;
  if (const auto info = info_of(sides, names)) {
    datasets = looked_up(sides, *info, names, &side == &sides.evaluation);
  } else {
    if (key != "val_dataset" && std::ranges::none_of(found->items, has_marks)) return;
    for (const std::string& item : found->items)
      for (DataEntry& entry : entries_named(item)) datasets.entries.push_back(std::move(entry));
  }
  const Written said = *sides.take(key);
  sides.add(side, said, std::move(datasets));
}

// Whether evaluation is asked for, and not of another set.
bool evaluates(const DataSides& sides) {
  const std::string steps = sides.value_of("eval_steps");
  std::string strategy = sides.value_of("eval_strategy");
  if (strategy.empty()) strategy = sides.value_of("evaluation_strategy");
  strategy = base::lower_case(strategy);
  if (strategy == "no" || strategy == "none" || strategy == "false") return false;
  const bool has_other =
      !sides.value_of("eval_data").empty() || !sides.value_of("val_set_size").empty();
  return !has_other && (!strategy.empty() || (!steps.empty() && steps != "0") ||
                        parse_boolean(sides.value_of("do_eval")) == true);
}

// What is written of one data set of the hub.
struct HubWords {
  std::optional<Written> name;
  std::optional<Written> config;
  std::optional<Written> split;
  std::optional<Written> test;
  std::string usual_test = "test";
};

HubWords take_hub_words(DataSides& sides) {
  HubWords words{sides.take("dataset_name"), sides.take("dataset_config"),
                 sides.take("dataset_train_split"), sides.take("dataset_test_split")};
  if (auto config = sides.take("dataset_config_name")) {
    words.config = std::move(config);
    words.usual_test = "validation";
  }
  const auto text = sides.take("dataset_text_field");
  if (text && one_text(*text) == "text")
    sides.note(*text, "the field text is read in any case");
  else if (text)
    sides.text_field = one_text(*text);
  return words;
}

void read_hub_name(DataSides& sides) {
  const HubWords words = take_hub_words(sides);
  if (!words.name) {
    for (const std::optional<Written>& each : {words.config, words.split, words.test})
      if (each) sides.note(*each, "no dataset_name says of which data set");
    return;
  }
  if (!sides.data.entries.empty()) return sides.note(*words.name, "datasets says what to train on");
  const DataEntry whole{.path = one_text(*words.name),
                        .config = words.config ? one_text(*words.config) : ""};
  const auto add = [&](DataSide& side, const std::optional<Written>& split,
                       const std::string& usual) {
    sides.config.mistakes.gather([&] {
      DataEntry entry = whole;
      const Written& said = split ? *split : *words.name;
      sides.set_split(entry, said, split ? one_text(*split) : usual);
      sides.add(side, said, {{entry}, {}});
    });
  };
  add(sides.data, words.split, "train");
  if (evaluates(sides))
    add(sides.evaluation, words.test, words.usual_test);
  else if (words.test)
    sides.note(*words.test, "nothing says when to evaluate, such as eval_steps");
}

// {NAME: SHARE of its records}, of each the parts of dataset_splits, whose names say which of them
// evaluate.
void read_mixer(DataSides& sides) {
  constexpr std::string_view kPrefix = "dataset_mixer.";
  const auto splits = sides.take("dataset_splits");
  const auto configs = sides.take("dataset_configs");
  const std::vector<std::string> parts = splits ? splits->items : std::vector<std::string>{"train"};
  const std::vector<Written> names = sides.take_prefixed(kPrefix);
  for (size_t i = 0; i < names.size(); ++i) {
    sides.config.mistakes.gather([&] {
      const double share = share_of(names[i]);
      for (const std::string& part : parts) {
        DataEntry entry{.path = names[i].name.substr(kPrefix.size())};
        if (configs && i < configs->items.size()) entry.config = configs->items[i];
        sides.set_split(entry, splits ? *splits : names[i], part);
        const bool trains = part.starts_with("train");
        if (trains) entry.repeats *= share;
        sides.add(trains ? sides.data : sides.evaluation, names[i], {{entry}, {}});
      }
    });
  }
}

}  // namespace

void take_names(DataSides& sides) {
  const auto read = [&](DataSide& side, std::string_view key) {
    sides.config.mistakes.gather([&] { read_names(sides, side, key); });
  };
  read(sides.data, "dataset");
  read(sides.evaluation, "eval_dataset");
  read(sides.evaluation, "val_dataset");
  sides.config.mistakes.gather([&] { read_hub_name(sides); });
  read_mixer(sides);
}

}  // namespace snug::formats
