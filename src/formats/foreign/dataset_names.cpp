#include "formats/foreign/dataset_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "formats/folder/hub_cache.h"

namespace snug::formats {
namespace {

// A whole number, with the separators that Python allows.
bool read_count(std::string_view text, int64_t& count) {
  std::string digits;
  for (const char c : text)
    if (c != '_' && c != ' ') digits += c;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  return error == std::errc() && end == digits.data() + digits.size() && count >= 0;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

SplitPart part_in(std::string_view text, const std::string& split) {
  const auto fail = [&] {
    base::throw_user_error("is '{}'; expected a name such as train, or a part such as train[:1000]",
                           split);
  };
  const size_t open = text.find('[');
  SplitPart part{.name = std::string(trimmed(text.substr(0, open)))};
  if (part.name.empty()) fail();
  if (open == std::string_view::npos) return part;
  if (!text.ends_with(']')) fail();
  const std::string_view range = text.substr(open + 1, text.size() - open - 2);
  const size_t colon = range.find(':');
  if (colon == std::string_view::npos) fail();
  part.is_whole = false;
  const auto read = [&](std::string_view bound, int64_t& value) {
    bound = trimmed(bound);
    if (bound.empty()) return;
    if (bound.ends_with('%')) {
      part.is_percent = true;
      bound.remove_suffix(1);
    }
    if (!read_count(bound, value)) fail();
  };
  read(range.substr(0, colon), part.from);
  read(range.substr(colon + 1), part.to);
  const bool is_all = part.from == 0 && (part.to == 0 || (part.is_percent && part.to == 100));
  part.is_whole = is_all && !range.substr(colon + 1).starts_with("0");
  return part;
}

}  // namespace

bool is_on_disk(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::vector<DataEntry> entries_named(const std::string& name) {
  if (is_on_disk(name)) return {{.path = name}};
  std::string path = name;
  DataEntry entry;
  for (const std::string_view hub : {"hf::", "HF::", "ms::", "MS::"})
    if (path.starts_with(hub)) path.erase(0, hub.size());
  if (const size_t sharp = path.rfind('#'); sharp != std::string::npos && !is_on_disk(path)) {
    if (!read_count(std::string_view(path).substr(sharp + 1), entry.limit) || entry.limit == 0)
      base::throw_user_error("is '{}'; expected NAME#COUNT with a number of records of 1 or more",
                             name);
    path.resize(sharp);
  }
  std::string_view subsets;
  const size_t colon = is_on_disk(path) ? std::string::npos : path.find(':');
  if (colon != std::string::npos) subsets = std::string_view(path).substr(colon + 1);
  entry.path = path.substr(0, colon);
  if (subsets.empty()) return {entry};
  std::vector<DataEntry> entries;
  for (size_t at = 0; at <= subsets.size();) {
    const size_t end = std::min(subsets.find('/', at), subsets.size());
    entry.config = trimmed(subsets.substr(at, end - at));
    entries.push_back(entry);
    at = end + 1;
  }
  return entries;
}

std::vector<SplitPart> split_parts(const std::string& split) {
  std::vector<SplitPart> parts;
  for (size_t at = 0; at <= split.size();) {
    const size_t end = std::min(split.find('+', at), split.size());
    parts.push_back(part_in(trimmed(std::string_view(split).substr(at, end - at)), split));
    at = end + 1;
  }
  return parts;
}

std::string take_split(DataEntry& entry, const std::string& split) {
  if (split.empty()) return "";
  const std::vector<SplitPart> parts = split_parts(split);
  if (std::ranges::all_of(parts, &SplitPart::is_whole)) {
    if (parts.size() > 1)
      entry.split = split;
    else if (parts.front().name != "train")
      entry.split = parts.front().name;
    return "";
  }
  const SplitPart& part = parts.front();
  if (part.from > 0 || part.to == 0 || parts.size() > 1)
    base::throw_user_error(
        "is '{}', but parts begin with the first record: say split: {}[:COUNT], or val_set_size: "
        "SHARE where the rest is to evaluate on",
        split, part.name);
  if (part.name != "train") entry.split = part.name;
  if (!part.is_percent) {
    entry.limit = part.to;
    return "";
  }
  entry.repeats = static_cast<double>(part.to) / 100;
  return fmt::format(
      "split: {} is so many of the records in each epoch, and others in the next one; limit: COUNT "
      "takes the first ones",
      split);
}

std::string data_set_path(const std::string& path, const std::string& revision,
                          const std::string& below) {
  std::string whole = path;
  if (path.empty() || is_on_disk(path) || !parse_hub_name(path, HubKind::dataset))
    return below.empty() ? path : path.empty() ? below : path + "/" + below;
  if (!revision.empty() && revision != "main") whole += "@" + revision;
  return below.empty() ? whole : "hf://datasets/" + whole + "/" + below;
}

void take_split(DataEntry& entry, const Written& split, std::vector<std::string>& notes) {
  try {
    const std::string note = take_split(entry, split.items.front());
    if (!note.empty()) notes.push_back(base::to_string(split.where) + note);
  } catch (const base::UserError& error) {
    throw base::UserError(error.what(), split.where);
  }
}

}  // namespace snug::formats
