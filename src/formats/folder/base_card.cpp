#include "formats/folder/base_card.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/lower_case.h"
#include "formats/folder/front_matter.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostReadmeBytes = int64_t{4} << 20;
constexpr int64_t kMostLicenceBytes = int64_t{1} << 20;

// Empty where there is no such file, or it cannot be read.
std::string small_text(const fs::path& file, int64_t most) {
  try {
    std::error_code error;
    return fs::is_regular_file(file, error) ? base::read_text_file(file, most) : "";
  } catch (const base::UserError&) {
    return "";
  }
}

// A text, or a list of texts.
std::vector<std::string> texts_of(const YAML::Node& node) {
  std::vector<std::string> texts;
  if (!node) return texts;
  if (node.IsScalar() && !node.Scalar().empty()) texts.push_back(node.Scalar());
  if (node.IsSequence())
    for (const YAML::Node& each : node)
      if (each.IsScalar() && !each.Scalar().empty()) texts.push_back(each.Scalar());
  return texts;
}

std::string text_of(const YAML::Node& node) {
  const std::vector<std::string> texts = texts_of(node);
  return texts.empty() ? "" : texts.front();
}

BaseCard card_of_readme(const std::string& text) {
  BaseCard card;
  try {
    const YAML::Node root = YAML::Load(front_matter(text));
    if (!root.IsMap()) return card;
    card.licences = texts_of(root["license"]);
    card.licence_name = text_of(root["license_name"]);
    card.licence_link = text_of(root["license_link"]);
    card.languages = texts_of(root["language"]);
  } catch (const YAML::Exception&) {
    return {};
  }
  return card;
}

// A licence by words of its first lines.
struct KnownLicence {
  std::string_view words;  // in lower case, with one space between them
  std::string_view id;     // the hub's
};

constexpr auto kKnownLicences = std::to_array<KnownLicence>({
    {"apache license version 2.0", "apache-2.0"},
    {"llama 2 community license", "llama2"},
    {"llama 3 community license", "llama3"},
    {"llama 3.1 community license", "llama3.1"},
    {"llama 3.2 community license", "llama3.2"},
    {"llama 3.3 community license", "llama3.3"},
    {"gemma terms of use", "gemma"},
    {"gnu affero general public license version 3", "agpl-3.0"},
    {"gnu lesser general public license version 3", "lgpl-3.0"},
    {"gnu general public license version 3", "gpl-3.0"},
    {"mozilla public license version 2.0", "mpl-2.0"},
    {"permission is hereby granted, free of charge", "mit"},
});

std::string first_words(std::string_view text) {
  constexpr size_t kLookedAt = 1200;
  std::string words;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (!is_space)
      words += c;
    else if (!words.empty() && words.back() != ' ')
      words += ' ';
    if (words.size() >= kLookedAt) break;
  }
  return base::lower_case(words);
}

bool is_licence(const fs::path& file) {
  const std::string name = base::lower_case(file.filename().string());
  const auto begins = [&](std::string_view word) { return name.starts_with(word); };
  return (begins("license") || begins("licence") || begins("copying") || begins("notice") ||
          begins("use_policy")) &&
         !name.ends_with(".safetensors") && !name.ends_with(".json");
}

// The file itself is the licence where no words are known.
void add_licence_of_files(const fs::path& model, BaseCard& card) {
  for (const fs::path& file : licence_files(model)) {
    const std::string name = base::lower_case(file.filename().string());
    if (name.starts_with("notice") || name.starts_with("use_policy")) continue;
    const std::string words = first_words(small_text(file, kMostLicenceBytes));
    const auto known = std::ranges::find_if(kKnownLicences, [&](const KnownLicence& each) {
      return words.find(each.words) != std::string::npos;
    });
    if (known != kKnownLicences.end()) {
      card.licences = {std::string(known->id)};
      return;
    }
    card.licences = {"other"};
    card.licence_name = "licence-of-the-base-model";
    card.licence_link = file.filename().string();
  }
}

}  // namespace

std::vector<fs::path> licence_files(const fs::path& model) {
  std::vector<fs::path> files;
  std::error_code error;
  if (!fs::is_directory(model, error)) return files;
  for (const auto& entry : base::list_folder(model))
    if (entry.is_regular_file() && is_licence(entry.path()) &&
        static_cast<int64_t>(entry.file_size()) <= kMostLicenceBytes)
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

BaseCard base_card(const fs::path& model) {
  BaseCard card = card_of_readme(small_text(model / "README.md", kMostReadmeBytes));
  if (card.licences.empty()) add_licence_of_files(model, card);
  return card;
}

}  // namespace snug::formats
