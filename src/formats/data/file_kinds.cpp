#include "formats/data/file_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/file_ending.h"

namespace snug::formats {

namespace {

// Files that describe a data set, as `datasets` writes them, and files of a model.
constexpr auto kDescriptions = std::to_array<std::string_view>(
    {"adapter_config.json", "added_tokens.json", "chat_template.json", "config.json",
     "dataset_dict.json", "dataset_info.json", "dataset_infos.json", "generation_config.json",
     "merges.txt", "preprocessor_config.json", "processor_config.json", "special_tokens_map.json",
     "state.json", "tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt"});

std::string_view name_in(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

bool is_data_file(const std::string& path, std::string_view pattern) {
  const std::string_view name = name_in(path);
  const bool describes = std::ranges::find(kDescriptions, name) != kDescriptions.end() ||
                         name.ends_with(".index.json");
  return (!describes || name == name_in(pattern)) && base::data_file_ending(path) != nullptr;
}

KindChoice commonest_kind(const std::vector<std::string>& files) {
  std::array<size_t, base::kDataFileEndings.size()> counts{};
  const auto place = [](const std::string& file) {
    return static_cast<size_t>(base::data_file_ending(file) - base::kDataFileEndings.data());
  };
  for (const std::string& file : files) ++counts[place(file)];
  const auto commonest = static_cast<size_t>(std::ranges::max_element(counts) - counts.begin());
  KindChoice choice;
  for (const std::string& file : files) {
    const bool is_chosen =
        base::kDataFileEndings[place(file)].kind == base::kDataFileEndings[commonest].kind;
    (is_chosen ? choice.files : choice.others).push_back(file);
  }
  return choice;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 5;
  if (names.size() <= kMost + 1) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kMost, ", "),
                     names.size() - kMost);
}

}  // namespace snug::formats
