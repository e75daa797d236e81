#include "formats/data/named_splits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "formats/data/path_pattern.h"

namespace snug::formats {
namespace {

struct SplitWords {
  std::string_view split;
  std::vector<std::string_view> words;
};

const std::array<SplitWords, 3>& split_words() {
  static const std::array<SplitWords, 3> all{
      SplitWords{"train", {"train", "training"}},
      SplitWords{"validation", {"validation", "valid", "dev", "val"}},
      SplitWords{"test", {"test", "testing", "eval", "evaluation"}}};
  return all;
}

bool is_separator(char letter) {
  return std::string_view("-._ 0123456789").find(letter) != std::string_view::npos;
}

// A file's ending may follow the word; a folder's name may end with it.
bool has_split_word(std::string_view name, std::string_view word, bool is_folder) {
  for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || is_separator(name[at - 1]);
    const bool ends = end == name.size() ? is_folder : is_separator(name[end]);
    if (begins && ends) return true;
  }
  return false;
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_in_named_folder(std::string_view path, std::string_view word) {
  for (size_t end = path.find('/'); end != std::string_view::npos; end = path.find('/')) {
    if (has_split_word(path.substr(0, end), word, true)) return true;
    path.remove_prefix(end + 1);
  }
  return false;
}

bool is_named(std::string_view path, std::string_view word) {
  return has_split_word(name_of(path), word, false);
}

using Fits = bool (*)(std::string_view path, std::string_view word);

std::vector<DataSplit> splits_where(const std::vector<std::string>& files, Fits fits) {
  std::vector<DataSplit> splits;
  for (const SplitWords& words : split_words()) {
    DataSplit split{std::string(words.split), {}};
    std::ranges::copy_if(files, std::back_inserter(split.files), [&](const std::string& file) {
      return std::ranges::any_of(words.words,
                                 [&](std::string_view word) { return fits(file, word); });
    });
    if (!split.files.empty()) splits.push_back(std::move(split));
  }
  return splits;
}

constexpr std::string_view kNumbering = "-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]";
constexpr size_t kNumberingBytes = std::string_view("-00000-of-00000").size();

// Where the numbering of a part begins in a path.
std::optional<size_t> numbering_in(std::string_view path) {
  if (path.size() <= kNumberingBytes) return std::nullopt;
  for (size_t at = path.size() - kNumberingBytes; at > 0; --at)
    if (path[at] == '-' && name_matches(kNumbering, path.substr(at, kNumberingBytes))) return at;
  return std::nullopt;
}

std::vector<DataSplit> splits_of_parts(const std::vector<std::string>& files) {
  constexpr std::string_view kFolder = "data/";
  std::map<std::string, std::vector<std::string>> named;
  for (const std::string& file : files) {
    if (!file.starts_with(kFolder) || file.find('/', kFolder.size()) != std::string::npos) continue;
    const auto at = numbering_in(file);
    if (at && *at > kFolder.size() && file.find('.', *at) != std::string::npos)
      named[file.substr(kFolder.size(), *at - kFolder.size())].push_back(file);
  }
  std::vector<DataSplit> splits;
  for (const SplitWords& words : split_words())
    if (auto known = named.extract(std::string(words.split)))
      splits.push_back({known.key(), std::move(known.mapped())});
  for (auto& [name, its_files] : named) splits.push_back({name, std::move(its_files)});
  return splits;
}

int number_in(std::string_view digits) {
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace

std::vector<DataSplit> named_splits(const std::vector<std::string>& files) {
  if (auto splits = splits_of_parts(files); !splits.empty()) return splits;
  if (auto splits = splits_where(files, is_in_named_folder); !splits.empty()) return splits;
  if (auto splits = splits_where(files, is_named); !splits.empty()) return splits;
  if (files.empty()) return {};
  return {{"train", files}};
}

std::vector<NumberedParts> numbered_parts(const std::vector<std::string>& files) {
  std::map<std::pair<std::string, int>, std::set<int>> all;
  for (const std::string& file : files)
    if (const auto at = numbering_in(file)) {
      const std::string_view numbering = std::string_view(file).substr(*at, kNumberingBytes);
      all[{file.substr(0, *at), number_in(numbering.substr(numbering.size() - 5))}].insert(
          number_in(numbering.substr(1, 5)));
    }
  std::vector<NumberedParts> parts;
  parts.reserve(all.size());
  for (const auto& [of, numbers] : all)
    parts.push_back({of.first, of.second, static_cast<int>(std::ssize(numbers))});
  return parts;
}

}  // namespace snug::formats
