// What a model's folder says of its licence.
#include "formats/folder/base_card.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "../base/temporary_folder.h"

namespace snug::formats {
namespace {

using Texts = std::vector<std::string>;

TEST(BaseCard, ReadsTheYamlOfTheReadme) {
  const testing::TemporaryFolder folder;
  folder.write("README.md",
               "---\nlanguage: [en, de]\nlicense: other\nlicense_name: house-rules\n"
               "license_link: https://example.com/rules\n---\n# Model\n");
  folder.write("LICENSE", "Apache License Version 2.0");
  const BaseCard card = base_card(folder.path());
  EXPECT_EQ(card.licences, Texts{"other"});
  EXPECT_EQ(card.licence_name, "house-rules");
  EXPECT_EQ(card.licence_link, "https://example.com/rules");
  EXPECT_EQ(card.languages, (Texts{"en", "de"}));
}

TEST(BaseCard, KnowsTheWordsOfLicenceFiles) {
  const std::vector<std::pair<std::string, std::string>> known = {
      {"\n                                 Apache License\n                           Version 2.0, "
       "January 2004\n",
       "apache-2.0"},
      {"MIT License\n\nCopyright (c) X\n\nPermission is hereby granted, free of charge, to", "mit"},
      {"LLAMA 3.1 COMMUNITY LICENSE AGREEMENT\nLlama 3.1 Version Release Date", "llama3.1"},
      {"META LLAMA 3 COMMUNITY LICENSE AGREEMENT", "llama3"},
      {"My own rules", "other"}};
  for (const auto& [text, id] : known) {
    const testing::TemporaryFolder folder;
    folder.write("LICENSE.txt", text);
    const BaseCard card = base_card(folder.path());
    EXPECT_EQ(card.licences, Texts{id}) << text;
    EXPECT_EQ(card.licence_link, id == "other" ? "LICENSE.txt" : "");
  }
}

TEST(BaseCard, SaysNothingWhereThereIsNothing) {
  const testing::TemporaryFolder folder;
  EXPECT_TRUE(base_card(folder.path()).licences.empty());
  EXPECT_TRUE(base_card(folder / "not/there").licences.empty());
  EXPECT_TRUE(licence_files(folder / "not/there").empty());
  folder.write("README.md", "---\nlicense: [broken\n---\n");
  EXPECT_TRUE(base_card(folder.path()).licences.empty());
  folder.write("README.md", "---\n- a list\n---\n");
  EXPECT_TRUE(base_card(folder.path()).licences.empty());
}

TEST(BaseCard, ListsTheFilesThatGoWithTheModel) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"LICENSE", "USE_POLICY.md", "NOTICE", "README.md", "config.json",
                           "copying.txt", "model.safetensors"})
    folder.write(name, "x");
  Texts names;
  for (const auto& file : licence_files(folder.path())) names.push_back(file.filename().string());
  EXPECT_EQ(names, (Texts{"LICENSE", "NOTICE", "USE_POLICY.md", "copying.txt"}));
}

}  // namespace
}  // namespace snug::formats
