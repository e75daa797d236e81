// What a model's folder says of its licence and its languages, for the card of what is made of it:
// the YAML of its README.md, or else its licence file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace snug::formats {

struct BaseCard {
  // The hub's words: "apache-2.0", "llama3.1", "other"; empty: the folder says nothing.
  std::vector<std::string> licences{};
  std::string licence_name{};  // of "other"
  std::string licence_link{};
  std::vector<std::string> languages{};
};

// Never throws for what the files hold: a README.md whose YAML is broken says nothing.
BaseCard base_card(const std::filesystem::path& model);

// The files that go wherever the model goes, sorted by name: LICENSE, LICENSE.txt, COPYING,
// NOTICE.md, USE_POLICY.md and the like. Empty where the folder has none or does not exist.
std::vector<std::filesystem::path> licence_files(const std::filesystem::path& model);

}  // namespace snug::formats
