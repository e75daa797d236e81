// What other tools say of all data sets: counts, mixes by probabilities, names of columns, and the
// template that writes their records.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/lower_case.h"
#include "formats/foreign/data_sides.h"
#include "formats/foreign/template_words.h"
#include "formats/foreign/tool_entries.h"
#include "formats/recipe/data_entries.h"

namespace snug::formats {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

// The fields of ms-swift, and those of a recipe.
constexpr auto kColumns = std::to_array<Pair>({{"query", "question"},
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

// {FIELD: ITS NAME}.
void take_columns(DataSides& sides) {
  constexpr std::string_view kPrefix = "columns.";
  Written fields{"fields", {}, true, {}, false, false, "columns"};
  for (const Written& column : sides.take_prefixed(kPrefix)) {
    const std::string& name = one_text(column);
    const auto* const known = std::ranges::find(kColumns, name, &Pair::first);
    fields.where = column.where;
    if (known == kColumns.end())
      sides.config.mistakes.add(
          fmt::format("'{}' is '{}', which is no field that Snug reads", column.name, name),
          column.where);
    else
      fields.items.push_back(
          fmt::format("{}={}", known->second, column.name.substr(kPrefix.size())));
  }
  if (!fields.items.empty()) sides.config.settings.push_back(std::move(fields));
}

// Other names are for chat_template to judge.
void take_template(DataSides& sides) {
  const Written* found = sides.find("template");
  if (found == nullptr) return;
  const Written written = *found;
  if (base::lower_case(sides.value_of("stage")) == "pt") {
    sides.take("template");
    return sides.note(written, "texts are learned as they are");
  }
  if (!is_template_of_model(written.items.front())) return;
  sides.take("template");
  sides.set("chat_template", "tokenizer_default", written);
  sides.config.notes.push_back(
      fmt::format("{}'template: {}' is the chat template of the model's folder",
                  base::to_string(written.where), written.items.front()));
}

// The entries of keys that hold paths, where something is said of each.
void take_paths(DataSides& sides, DataSide& side) {
  constexpr auto kData = std::to_array<std::string_view>({"data", "dataset", "train_file"});
  constexpr auto kEvaluation =
      std::to_array<std::string_view>({"eval_data", "eval_dataset", "validation_file"});
  if (!side.entries.empty()) return;
  for (const std::string_view key : &side == &sides.data ? kData : kEvaluation) {
    if (sides.find(key) == nullptr) continue;
    const Written written = *sides.take(key);
    ToolDatasets datasets;
    for (const std::string& item : written.items)
      datasets.entries.push_back(parse_entry(item, written));
    return sides.add(side, written, std::move(datasets));
  }
}

void limit(DataSides& sides, DataSide& side, const Written& count) {
  constexpr const char* kLike = "max_steps";  // whose values are numbers of 1 or more
  const auto most = std::get<int64_t>(
      parse_value(*find_recipe_key(kLike),
                  {kLike, count.items, count.is_list, count.where, false, false, count.name}));
  if (most < 1)
    throw base::UserError(
        fmt::format("'{}' is {}, so nothing would be left of the data", count.name, most),
        count.where);
  take_paths(sides, side);
  for (DataEntry& entry : side.entries)
    entry.limit = entry.limit == 0 ? most : std::min(most, entry.limit);
}

void take_counts(DataSides& sides) {
  const auto read = [&](std::string_view key, std::initializer_list<DataSide*> of) {
    if (const auto count = sides.take(key))
      for (DataSide* side : of) sides.config.mistakes.gather([&] { limit(sides, *side, *count); });
  };
  read("max_samples", {&sides.data, &sides.evaluation});
  for (const char* key : {"max_train_samples", "max_train_examples"}) read(key, {&sides.data});
  for (const char* key : {"max_eval_samples", "max_eval_examples"}) read(key, {&sides.evaluation});
}

void set_weights(DataSides& sides, const Written& said, const std::vector<std::string>& weights) {
  std::vector<DataEntry>& entries = sides.data.entries;
  if (weights.size() != entries.size())
    throw base::UserError(fmt::format("'{}' has {} numbers for {} data sets", said.name,
                                      weights.size(), entries.size()),
                          said.where);
  for (size_t i = 0; i < weights.size(); ++i)
    entries[i].weight = share_of({said.name, {weights[i]}, false, said.where});
  sides.config.notes.push_back(fmt::format(
      "{}'{}' gives weights: an epoch takes as many records as all data sets have together, and of "
      "each its share; one that is used up begins again, and none ends an epoch",
      base::to_string(said.where), said.name));
}

// Probabilities with which records are drawn.
void take_mix(DataSides& sides) {
  const auto strategy = sides.take("mix_strategy");
  auto shares = sides.take("interleave_probs");
  if (auto other = sides.take("interleave_prob")) shares = std::move(other);
  if (const auto stopping = sides.take("stopping_strategy"); stopping && !shares)
    sides.note(*stopping, "data sets follow each other and are shuffled together");
  const bool is_mixed = strategy && strategy->items.front().starts_with("interleave");
  if (strategy && !is_mixed && strategy->items.front() != "concat")
    sides.config.mistakes.add(
        fmt::format("'mix_strategy' is '{}'; expected concat, interleave_under, interleave_over or "
                    "interleave_once",
                    strategy->items.front()),
        strategy->where);
  if (!is_mixed && !shares) return;
  sides.config.mistakes.gather([&] {
    take_paths(sides, sides.data);
    const std::vector<std::string> equal(sides.data.entries.size(), "1");
    set_weights(sides, shares ? *shares : *strategy, shares ? comma_items(*shares) : equal);
  });
}

// Records that are held out where there is nothing else to evaluate on.
void take_held_out(DataSides& sides) {
  if (const auto share = sides.take("test_split_size"))
    sides.set("val_set_size", share->items.front(), *share);
  const auto percent = sides.take("validation_split_percentage");
  if (!percent) return;
  const bool has_sets = !sides.evaluation.entries.empty() ||
                        !sides.value_of("validation_file").empty() ||
                        !sides.value_of("eval_data").empty();
  if (has_sets) return sides.note(*percent, "there is a set to evaluate on");
  if (percent->items.front() == "0") return;
  sides.config.mistakes.gather(
      [&] { sides.set("val_set_size", fmt::format("{}", share_of(*percent) / 100), *percent); });
}

// axolotl's word for a template that chat_template_jinja gives, which is another name of
// chat_template.
void take_jinja(DataSides& sides) {
  const Written* form = sides.find("chat_template");
  const Written* text = sides.find("chat_template_jinja");
  if (text == nullptr) return;
  if (text->items.front().find("{%") != std::string::npos ||
      text->items.front().find("{{") != std::string::npos) {
    sides.config.mistakes.add(
        "'chat_template_jinja' is a template: write it into a file, and say chat_template: FILE",
        text->where);
    sides.take("chat_template_jinja");
  }
  if (form != nullptr && form->items.front() == "jinja") sides.take("chat_template");
}

}  // namespace

void take_shares(DataSides& sides) {
  take_held_out(sides);
  take_columns(sides);
  take_template(sides);
  take_jinja(sides);
  take_counts(sides);
  take_mix(sides);
}

}  // namespace snug::formats
