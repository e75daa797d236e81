// Folders as the `datasets` library takes them (scripts/oracles/data_layouts.py), and where Snug
// differs on purpose.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../base/temporary_folder.h"
#include "base/json.h"
#include "formats/data/data_files.h"

namespace snug::formats {
namespace {

using nlohmann::json;
using testing::TemporaryFolder;

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

// What an entry takes of the folder, in any order; an error as its text.
std::vector<std::string> taken(const TemporaryFolder& folder, const std::string& config,
                               const std::string& split) {
  std::vector<std::string> names;
  try {
    for (const std::string& file :
         data_files({.path = folder.path().string(), .config = config, .split = split}).files)
      names.push_back(file.substr(folder.path().string().size() + 1));
  } catch (const base::UserError& error) {
    names = {error.what()};
  }
  return sorted(names);
}

void expect_as(const json& expected, const TemporaryFolder& folder, const std::string& name) {
  for (const auto& [config, splits] : expected.at("configs").items())
    for (const auto& [split, files] : splits.items())
      EXPECT_EQ(taken(folder, config, split), sorted(files))
          << name << ", " << config << ", " << split;
  const std::string chosen = expected.at("default");
  if (chosen.empty()) {
    EXPECT_TRUE(testing::contains(taken(folder, "", "").front(), "give one of")) << name;
    return;
  }
  for (const auto& [split, files] : expected.at("configs").at(chosen).items())
    EXPECT_EQ(taken(folder, "", split), sorted(files)) << name << ", " << split;
}

TEST(DataLayouts, AreTakenAsDatasetsTakesThem) {
  const json golden = base::read_json_file("tests/goldens/data_layouts.json");
  ASSERT_GE(golden.at("layouts").size(), 40U);
  for (const json& layout : golden.at("layouts")) {
    const TemporaryFolder folder;
    for (const auto& [path, text] : layout.at("files").items()) {
      std::filesystem::create_directories((folder / path).parent_path());
      std::ofstream(folder / path) << text.get<std::string>();
    }
    expect_as(layout.contains("here") ? layout.at("here") : layout, folder, layout.at("name"));
  }
}

}  // namespace
}  // namespace snug::formats
