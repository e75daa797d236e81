#include "formats/foreign/data_sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/foreign/dataset_names.h"
#include "formats/foreign/field_words.h"
#include "formats/recipe/data_entries.h"

namespace snug::formats {

std::optional<Written> DataSides::take(std::string_view name) {
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

std::string DataSides::value_of(std::string_view name) const {
  for (const std::vector<Written>* keys : {&std::as_const(all_), &others_}) {
    const auto found = std::ranges::find(*keys, name, &Written::name);
    if (found != keys->end() && !found->items.empty()) return found->items.front();
  }
  return "";
}

void DataSides::note(const Written& written, std::string_view why) {
  config.notes.push_back(
      fmt::format("{}'{}' is not used: {}", base::to_string(written.where), written.name, why));
}

void DataSides::add(DataSide& side, const Written& said, ToolDatasets datasets) {
  if (!side.said) side.said = said;
  side.entries.insert(side.entries.end(), datasets.entries.begin(), datasets.entries.end());
  ToolConfig& more = datasets.said;
  config.settings.insert(config.settings.end(), more.settings.begin(), more.settings.end());
  config.notes.insert(config.notes.end(), more.notes.begin(), more.notes.end());
  config.mistakes.gather([&] { more.mistakes.throw_if_any(); });
}

std::vector<Written> DataSides::take_prefixed(std::string_view prefix) {
  std::vector<Written> taken;
  std::erase_if(all_, [&](Written& written) {
    if (!written.name.starts_with(prefix) || written.items.empty()) return false;
    taken.push_back(std::move(written));
    return true;
  });
  return taken;
}

const Written* DataSides::find(std::string_view name) const {
  const auto found = std::ranges::find(all_, name, &Written::name);
  return found == all_.end() || found->items.empty() ? nullptr : &*found;
}

void DataSides::set(const std::string& key, const std::string& value, const Written& said) {
  config.settings.push_back({key, {value}, false, said.where, false, false, said.name});
}

void DataSides::set_split(DataEntry& entry, const Written& said, const std::string& split) {
  try {
    const std::string share = take_split(entry, split);
    if (!share.empty()) config.notes.push_back(base::to_string(said.where) + share);
  } catch (const base::UserError& error) {
    throw base::UserError(fmt::format("'{}' {}", said.name, error.what()), said.where);
  }
}

void DataSides::finish(DataSide& side) {
  if (side.entries.empty()) return;
  if (&side == &evaluation &&
      std::ranges::any_of(side.entries, [](const DataEntry& entry) { return entry.repeats != 1; }))
    return config.mistakes.add(
        fmt::format("'{}' takes a share of an evaluation set; say split: NAME[:COUNT], or "
                    "val_set_size: SHARE for a part of data",
                    side.said->name),
        side.said->where);
  Written written{std::string(side.key), {},    side.entries.size() > 1,
                  side.said->where,      false, false,
                  side.said->name};
  for (DataEntry& entry : side.entries) {
    if (!text_field.empty() && entry.fields.empty()) take_field(entry, "text", text_field);
    written.items.push_back(entry_text(entry));
  }
  config.settings.push_back(std::move(written));
}

ToolConfig DataSides::finish() {
  finish(data);
  finish(evaluation);
  return std::move(config);
}

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

double share_of(const Written& written) {
  constexpr const char* kLike = "weight_decay";  // whose values are numbers of at least 0
  Written value{kLike, written.items, written.is_list, written.where, false, false, written.name};
  const auto share = std::get<double>(parse_value(*find_recipe_key(kLike), value));
  if (share > 0) return share;
  throw base::UserError(
      fmt::format("'{}' is 0, so nothing would be taken: leave the data set out", written.name),
      written.where);
}

}  // namespace snug::formats
