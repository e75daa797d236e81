#include "formats/folder/added_tokens.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "base/file.h"

namespace snug::formats {
namespace {

using nlohmann::json;

std::string written(const std::filesystem::path& path) { return base::read_text_file(path); }

const std::vector<NewToken> kTwo{{"<|im_start|>", 7}, {"a\"b", 8}};

TEST(AddedTokens, StandInTokenizerJsonAfterTheOthers) {
  const testing::TemporaryFolder folder;
  // The key also stands in a text and in an inner object.
  const std::string before =
      "{\"x\": \"added_tokens\", \"model\": {\"added_tokens\": [1], \"vocab\": {\"]\\\"\": 0}},\n"
      "  \"added_tokens\": [\n    {\"id\": 6, \"content\": \"]\"}\n  ],  \"n\": 1.50}";
  const auto path = folder.write("tokenizer.json", before);
  write_added_tokens(path.parent_path(), kTwo);
  const json document = json::parse(written(path));
  const json& list = document.at("added_tokens");
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].at("id"), 6);
  EXPECT_EQ(list[1], (json{{"id", 7},
                           {"content", "<|im_start|>"},
                           {"single_word", false},
                           {"lstrip", false},
                           {"rstrip", false},
                           {"normalized", false},
                           {"special", true}}));
  EXPECT_EQ(list[2].at("content"), "a\"b");
  EXPECT_EQ(document.at("model").at("added_tokens"), json::array({1}));
  // All else is kept, byte by byte.
  const std::string text = written(path);
  EXPECT_TRUE(text.starts_with(before.substr(0, before.find("\n  ],"))));
  EXPECT_TRUE(text.ends_with("\n  ],  \"n\": 1.50}"));
}

TEST(AddedTokens, AreTheFirstOfAnEmptyList) {
  const testing::TemporaryFolder folder;
  const auto path = folder.write("tokenizer.json", R"({"added_tokens": [], "model": {}})");
  write_added_tokens(path.parent_path(), kTwo);
  EXPECT_EQ(json::parse(written(path)).at("added_tokens").size(), 2U);
}

TEST(AddedTokens, StandInTheFilesNextToIt) {
  const testing::TemporaryFolder folder;
  const auto path = folder.write("tokenizer.json", R"({"added_tokens": []})");
  const auto config = folder.write("tokenizer_config.json",
                                   R"({"eos_token": "e", "added_tokens_decoder": {"6": {}}})");
  const auto map = folder.write("added_tokens.json", R"({"x": 6})");
  write_added_tokens(path.parent_path(), kTwo);
  const json decoder = json::parse(written(config)).at("added_tokens_decoder");
  EXPECT_EQ(decoder.size(), 3U);
  EXPECT_EQ(decoder.at("7").at("content"), "<|im_start|>");
  EXPECT_FALSE(decoder.at("7").contains("id"));
  EXPECT_EQ(json::parse(written(map)), (json{{"x", 6}, {"<|im_start|>", 7}, {"a\"b", 8}}));
}

TEST(AddedTokens, NeedAFileToStandIn) {
  const testing::TemporaryFolder folder;
  EXPECT_THROW(write_added_tokens(folder.path(), kTwo), base::UserError);
  write_added_tokens(folder.path(), {});
  folder.write("tokenizer.json", R"({"model": {"added_tokens": []}})");
  EXPECT_THROW(write_added_tokens(folder.path(), kTwo), base::UserError);
}

}  // namespace
}  // namespace snug::formats
