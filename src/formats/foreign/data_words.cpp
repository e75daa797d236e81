// Stages: lists of data sets, names of data sets, and what is said of all of them (counts, mixes,
// columns), in this order, since the last change the entries of the first two.
#include "formats/foreign/data_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/lower_case.h"
#include "formats/foreign/dataset_info.h"
#include "formats/foreign/dataset_list.h"
#include "formats/foreign/dataset_mixture.h"
#include "formats/foreign/dataset_names.h"
#include "formats/foreign/field_words.h"
#include "formats/foreign/template_words.h"
#include "formats/foreign/torchtune_dataset.h"
#include "formats/recipe/data_entries.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> comma_items(const Written& written) {
  std::vector<std::string> items;
  for (const std::string& text : written.items) {
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      const std::string item = text.substr(at, end - at);
      const size_t first = item.find_first_not_of(" \"'[");
      const size_t last = item.find_last_not_of(" \"']");
      if (first != std::string::npos) items.push_back(item.substr(first, last - first + 1));
      at = end + 1;
    }
  }
  return items;
}

// Entries of `data` or of `eval_data`, and the key that names them.
struct Side {
  std::string_view key;
  std::vector<DataEntry> entries{};
  std::optional<Written> said{};  // the first key that they come from
};

class DataWords {
 public:
  DataWords(std::vector<Written>& all, const std::vector<Written>& others, const std::string& file)
      : all_(all), others_(others), file_(file) {}

  ToolConfig read() {
    take_lists();
    for (Side* side : {&data_, &evaluation_}) take_names(*side);
    if (const auto share = take("test_split_size"))
      set("val_set_size", share->items.front(), *share);
    take_hub_name();
    take_mixer();
    take_columns();
    take_template();
    take_counts();
    take_mix();
    for (Side* side : {&data_, &evaluation_}) finish(*side);
    return std::move(config_);
  }

 private:
  std::optional<Written> take(std::string_view name) {
    const auto found = std::ranges::find(all_, name, &Written::name);
    if (found == all_.end()) return std::nullopt;
    Written written = std::move(*found);
    all_.erase(found);
    if (written.items.empty()) {
      note(written, "it has no value");
      return std::nullopt;
    }
    return written;
  }

  // The value of a key that stays, or that the file has; empty where there is none.
  std::string value_of(std::string_view name) const {
    for (const std::vector<Written>* keys : {&std::as_const(all_), &others_}) {
      const auto found = std::ranges::find(*keys, name, &Written::name);
      if (found != keys->end() && !found->items.empty()) return found->items.front();
    }
    return "";
  }

  void note(const Written& written, std::string_view why) {
    config_.notes.push_back(
        fmt::format("{}'{}' is not used: {}", base::to_string(written.where), written.name, why));
  }

  void add(Side& side, const Written& said, ToolDatasets datasets) {
    if (!side.said) side.said = said;
    side.entries.insert(side.entries.end(), datasets.entries.begin(), datasets.entries.end());
    ToolConfig& more = datasets.said;
    config_.settings.insert(config_.settings.end(), more.settings.begin(), more.settings.end());
    config_.notes.insert(config_.notes.end(), more.notes.begin(), more.notes.end());
    config_.mistakes.gather([&] { more.mistakes.throw_if_any(); });
  }

  void take_lists() {
    const auto data = take("datasets");
    const auto held_out = take("test_datasets");
    config_.mistakes.gather([&] { add_lists(data, held_out); });
    if (const auto texts = take("pretraining_dataset"))
      config_.mistakes.gather([&] { add_list(data_, *texts, tool_entries(*texts)); });
    const auto built = take_built("dataset");
    const auto built_held_out = take_built("dataset_val");
    config_.mistakes.gather([&] { add_built(built, built_held_out); });
    if (const auto mixture = take("dataset_mixture"))
      config_.mistakes.gather([&] { add_mixture(*mixture); });
  }

  void add_lists(const std::optional<Written>& data, const std::optional<Written>& held_out) {
    std::vector<ToolEntry> entries;
    std::vector<ToolEntry> others;
    if (data) entries = tool_entries(*data);
    if (held_out) others = tool_entries(*held_out);
    if (const double share = held_out_share(entries, others); share > 0) {
      others.clear();
      set("val_set_size", fmt::format("{}", share), *held_out);
    }
    if (data) add_list(data_, *data, std::move(entries));
    if (!others.empty()) add_list(evaluation_, *held_out, std::move(others));
  }

  void add_list(Side& side, const Written& list, std::vector<ToolEntry> entries) {
    if (list.name == "pretraining_dataset")
      for (ToolEntry& entry : entries)
        if (!entry.find("type")) entry.keys.push_back({"type", {"pretrain"}, false, list.where});
    const std::string rl = base::lower_case(value_of("rl"));
    add(side, list, read_dataset_list(entries, file_, rl));
  }

  // torchtune's `dataset`, which is a map or a list of maps with a builder.
  std::optional<Written> take_built(std::string_view key) {
    const auto found = std::ranges::find(all_, key, &Written::name);
    if (found == all_.end() || found->items.empty() ||
        found->items.front().find("_component_") == std::string::npos)
      return std::nullopt;
    return take(key);
  }

  void add_built(const std::optional<Written>& data, const std::optional<Written>& held_out) {
    if (!data) return;
    std::vector<ToolEntry> entries = tool_entries(*data);
    std::vector<ToolEntry> others;
    if (held_out) others = tool_entries(*held_out);
    if (const double share = held_out_share(entries, others); share > 0) {
      others.clear();
      set("val_set_size", fmt::format("{}", share), *held_out);
    }
    add(data_, *data, read_torchtune_list(entries, file_, false));
    if (!others.empty()) add(evaluation_, *held_out, read_torchtune_list(others, file_, true));
  }

  void add_mixture(const Written& written) {
    Mixture mixture = read_mixture(written, file_);
    if (!mixture.test_size.empty()) set("val_set_size", mixture.test_size, written);
    add(data_, written, std::move(mixture.datasets));
  }

  // Names of a dataset_info.json, or of the hub with a subset and a count.
  void take_names(Side& side) {
    const bool is_data = &side == &data_;
    for (const std::string_view key :
         is_data ? std::array{"dataset", ""} : std::array{"eval_dataset", "val_dataset"}) {
      const auto found = std::ranges::find(all_, key, &Written::name);
      if (found == all_.end() || found->items.empty()) continue;
      config_.mistakes.gather([&] {
        ToolDatasets datasets;
        const Written written = *found;
        if (!read_names(written, datasets)) return;
        take(key);
        add(side, written, std::move(datasets));
      });
    }
  }

  // Whether they are such names; else they are paths as they are.
  bool read_names(const Written& written, ToolDatasets& datasets) {
    const std::vector<std::string> names = comma_items(written);
    if (const auto info = dataset_info(names)) {
      const bool learns_texts = base::lower_case(value_of("stage")) == "pt";
      for (const std::string& name : names) {
        if (!info->has(name) && is_on_disk(name)) {
          datasets.entries.push_back({.path = name});
        } else if (auto entry = info->entry(name, learns_texts, datasets.said)) {
          if (written.name != "dataset") entry->name = name;
          datasets.entries.push_back(std::move(*entry));
        }
      }
      return true;
    }
    const bool has_marks = std::ranges::any_of(written.items, [](const std::string& item) {
      const bool is_map = item.starts_with('{');
      return !is_map && !is_on_disk(item) &&
             (item.find('#') != std::string::npos || item.find(':') != std::string::npos);
    });
    if (!has_marks && written.name != "val_dataset") return false;
    for (const std::string& name : written.items)
      for (DataEntry& entry : entries_named(name)) datasets.entries.push_back(std::move(entry));
    return true;
  }

  // The file that says what names stand for: in dataset_dir, or in `data`, here or next to the
  // recipe.
  std::unique_ptr<DatasetInfo> dataset_info(const std::vector<std::string>& names) {
    const std::string said = value_of("dataset_dir");
    if (said.starts_with("REMOTE:") || said == "ONLINE")
      base::throw_user_error(
          "'dataset_dir' is {}, which is on another machine: download it, and say dataset_dir: "
          "FOLDER, the one with dataset_info.json",
          said);
    const std::string folder = said.empty() ? "data" : said;
    const fs::path beside = fs::path(file_).parent_path() / folder;
    for (const std::string& each : {folder, beside.string()})
      if (has_dataset_info(each)) {
        auto info = std::make_unique<DatasetInfo>(each);
        const bool is_meant =
            std::ranges::any_of(names, [&](const std::string& name) { return info->has(name); });
        if (is_meant || !said.empty()) return info;
      }
    const bool are_paths = std::ranges::all_of(names, is_on_disk);
    if (!said.empty() && !are_paths)
      base::throw_user_error(
          "'dataset_dir' is {}, but there is no {}/dataset_info.json, which says "
          "what the names of data sets stand for",
          said, said);
    return nullptr;
  }

  // TRL and the examples of transformers name one data set, and its parts.
  void take_hub_name() {
    const auto name = take("dataset_name");
    auto config = take("dataset_config");
    const bool is_example = value_of("dataset_config_name") != "";
    if (auto other = take("dataset_config_name")) config = other;
    const auto split = take("dataset_train_split");
    const auto test = take("dataset_test_split");
    const auto text = take("dataset_text_field");
    if (text && text->items.front() != "text") text_field_ = text->items.front();
    if (!name) {
      for (const std::optional<Written>& each : {config, split, test})
        if (each) note(*each, "no dataset_name says of which data set");
      return;
    }
    if (!data_.entries.empty()) return note(*name, "datasets says what to train on");
    DataEntry entry{.path = name->items.front()};
    if (config) entry.config = config->items.front();
    DataEntry held_out = entry;
    const auto set_split = [&](DataEntry& of, const std::optional<Written>& said,
                               const std::string& usual) {
      try {
        const std::string share = take_split(of, said ? said->items.front() : usual);
        if (!share.empty()) config_.notes.push_back(base::to_string(said->where) + share);
      } catch (const base::UserError& error) {
        throw base::UserError(fmt::format("'{}' {}", said->name, error.what()), said->where);
      }
    };
    config_.mistakes.gather([&] {
      set_split(entry, split, "train");
      add(data_, *name, {{entry}, {}});
    });
    if (!evaluates()) {
      if (test) note(*test, "nothing says when to evaluate, such as eval_steps");
      return;
    }
    config_.mistakes.gather([&] {
      set_split(held_out, test, is_example ? "validation" : "test");
      add(evaluation_, test ? *test : *name, {{held_out}, {}});
    });
  }

  std::vector<Written> take_prefixed(std::string_view prefix) {
    std::vector<Written> taken;
    std::erase_if(all_, [&](Written& written) {
      if (!written.name.starts_with(prefix) || written.items.empty()) return false;
      taken.push_back(std::move(written));
      return true;
    });
    return taken;
  }

  // {NAME: SHARE of its records}, of each the parts of dataset_splits, whose names say which of
  // them evaluate.
  void take_mixer() {
    const std::vector<Written> names = take_prefixed("dataset_mixer.");
    auto splits = take("dataset_splits");
    const auto configs = take("dataset_configs");
    for (size_t i = 0; i < names.size(); ++i) {
      DataEntry entry{.path = names[i].name.substr(std::string_view("dataset_mixer.").size())};
      if (configs && i < configs->items.size()) entry.config = configs->items[i];
      config_.mistakes.gather([&] {
        const double share = number_in(names[i], "weight_decay");
        for (const std::string& split :
             splits ? splits->items : std::vector<std::string>{"train"}) {
          DataEntry part = entry;
          if (!take_split(part, split).empty())
            throw base::UserError(
                fmt::format("'dataset_splits' has {}; a data set's number in dataset_mixer is the "
                            "share of its records",
                            split),
                splits->where);
          const bool trains = split.starts_with("train");
          if (trains && share > 0) part.repeats = share;
          add(trains ? data_ : evaluation_, names[i], {{part}, {}});
        }
      });
    }
  }

  // ms-swift's {FIELD: ITS NAME}.
  void take_columns() {
    constexpr auto kNames = std::to_array<std::pair<std::string_view, std::string_view>>(
        {{"query", "question"},
         {"prompt", "question"},
         {"question", "question"},
         {"response", "completion"},
         {"answer", "completion"},
         {"rejected_response", "rejected_response"},
         {"messages", "messages"},
         {"conversations", "conversations"},
         {"instruction", "instruction"},
         {"input", "input"},
         {"output", "output"},
         {"system", "system"},
         {"history", "history"},
         {"tools", "tools"},
         {"label", "label"}});
    Written fields{"fields", {}, true, {}};
    for (const Written& column : take_prefixed("columns.")) {
      const std::string& name = column.items.front();
      const auto* const known =
          std::ranges::find(kNames, name, &std::pair<std::string_view, std::string_view>::first);
      if (known == kNames.end())
        config_.mistakes.add(
            fmt::format("'{}' is '{}', which is no field that Snug reads", column.name, name),
            column.where);
      else
        fields.items.push_back(fmt::format("{}={}", known->second, column.name.substr(8)));
      fields.where = column.where;
    }
    if (fields.items.empty()) return;
    fields.said_as = "columns";
    config_.settings.push_back(std::move(fields));
  }

  // Other names are for chat_template to judge.
  void take_template() {
    const auto found = std::ranges::find(all_, "template", &Written::name);
    if (found == all_.end() || found->items.empty()) return;
    const Written written = *found;
    if (base::lower_case(value_of("stage")) == "pt") {
      take("template");
      return note(written, "texts are learned as they are");
    }
    if (!is_template_of_model(written.items.front())) return;
    take("template");
    set("chat_template", "tokenizer_default", written);
    config_.notes.push_back(
        fmt::format("{}'template: {}' is the chat template of the model's folder",
                    base::to_string(written.where), written.items.front()));
  }

  // A number that a key says, within what the recipe's key `like` takes.
  static double number_in(const Written& written, const char* like) {
    Written value{like, written.items, written.is_list, written.where, false, false, written.name};
    return std::get<double>(parse_value(*find_recipe_key(like), value));
  }

  // Whether evaluation is asked for, in words that also name the set.
  bool evaluates() const {
    const std::string steps = value_of("eval_steps");
    const bool has_other = !value_of("eval_data").empty() || !value_of("val_set_size").empty();
    return !has_other &&
           ((!steps.empty() && steps != "0") || parse_boolean(value_of("do_eval")) == true);
  }

  void take_counts() {
    for (const auto& [key, sides] :
         std::array{std::pair{"max_samples", 3}, std::pair{"max_train_samples", 1},
                    std::pair{"max_eval_samples", 2}}) {
      const auto count = take(key);
      if (!count) continue;
      config_.mistakes.gather([&] {
        const auto limit = std::get<int64_t>(parse_value(
            *find_recipe_key("max_steps"),
            {"max_steps", count->items, count->is_list, count->where, false, false, count->name}));
        for (Side* side : {&data_, &evaluation_}) {
          if ((sides & (side == &data_ ? 1 : 2)) == 0) continue;
          take_plain(*side);
          for (DataEntry& entry : side->entries)
            entry.limit = entry.limit == 0 ? limit : std::min(limit, entry.limit);
        }
      });
    }
  }

  // Shares of the entries, where several sources are mixed by probabilities.
  void take_mix() {
    const auto strategy = take("mix_strategy");
    auto shares = take("interleave_probs");
    if (auto other = take("interleave_prob")) shares = other;
    const auto stopping = take("stopping_strategy");
    const bool is_mixed = shares || (strategy && strategy->items.front().starts_with("interleave"));
    if (strategy && !is_mixed && strategy->items.front() != "concat")
      config_.mistakes.add(
          fmt::format(
              "'mix_strategy' is '{}'; expected concat, interleave_under, interleave_over or "
              "interleave_once",
              strategy->items.front()),
          strategy->where);
    if (!is_mixed) return;
    take_plain(data_);
    const Written& said = shares ? *shares : *strategy;
    std::vector<std::string> weights = shares ? comma_items(*shares) : std::vector<std::string>{};
    if (!shares) weights.assign(data_.entries.size(), "1");
    config_.mistakes.gather([&] {
      if (weights.size() != data_.entries.size())
        throw base::UserError(fmt::format("'{}' has {} numbers for {} data sets", said.name,
                                          weights.size(), data_.entries.size()),
                              said.where);
      for (size_t i = 0; i < weights.size(); ++i)
        data_.entries[i].weight =
            number_in({said.name, {weights[i]}, false, said.where}, "weight_decay");
    });
    config_.notes.push_back(fmt::format(
        "{}'{}' gives weights: an epoch takes as many records as all data sets have together, so "
        "many of each; when one of them is used up, it begins again",
        base::to_string(said.where), said.name));
  }

  // The entries of a key that names paths alone, where something is said of each.
  void take_plain(Side& side) {
    if (!side.entries.empty()) return;
    for (const std::string_view key :
         {side.key, side.key == "data" ? std::string_view("dataset") : "eval_dataset",
          side.key == "data" ? std::string_view("train_file") : "validation_file"}) {
      const auto plain = take(key);
      if (!plain) continue;
      ToolDatasets datasets;
      for (const std::string& item : plain->items)
        datasets.entries.push_back(parse_entry(item, *plain));
      return add(side, *plain, std::move(datasets));
    }
  }

  void set(const std::string& key, const std::string& value, const Written& said) {
    config_.settings.push_back({key, {value}, false, said.where, false, false, said.name});
  }

  void finish(Side& side) {
    if (side.entries.empty()) return;
    if (&side == &evaluation_ && std::ranges::any_of(side.entries, [](const DataEntry& entry) {
          return entry.repeats != 1;
        }))
      return config_.mistakes.add(
          fmt::format("'{}' takes a share of an evaluation set; say split: NAME[:COUNT], or "
                      "val_set_size: SHARE for a part of data",
                      side.said->name),
          side.said->where);
    Written written{std::string(side.key), {},    side.entries.size() > 1,
                    side.said->where,      false, false,
                    side.said->name};
    for (DataEntry& entry : side.entries) {
      if (!text_field_.empty() && entry.fields.empty()) take_field(entry, "text", text_field_);
      written.items.push_back(entry_text(entry));
    }
    config_.settings.push_back(std::move(written));
  }

  std::vector<Written>& all_;
  const std::vector<Written>& others_;
  const std::string& file_;
  ToolConfig config_;
  Side data_{"data"};
  Side evaluation_{"eval_data"};
  std::string text_field_;
};

}  // namespace

bool holds_data_sets(std::string_view name) {
  constexpr auto kLists = std::to_array<std::string_view>(
      {"datasets", "test_datasets", "pretraining_dataset", "dataset_mixture", "dataset_val"});
  return std::ranges::find(kLists, name) != kLists.end();
}

ToolConfig take_data_words(std::vector<Written>& all, const std::vector<Written>& others,
                           const std::string& file) {
  return DataWords(all, others, file).read();
}

}  // namespace snug::formats
