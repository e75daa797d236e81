// Cases of fsspec, which the `datasets` library matches with, and of a shell.
#include "formats/data/path_pattern.h"

#include "../base/temporary_folder.h"

#include <gtest/gtest.h>

namespace snug::formats {
namespace {

using testing::contains;
using testing::user_error_of;

bool fits(std::string_view pattern, std::string_view path) {
  return PathPattern(pattern).matches(path);
}

TEST(PathPattern, StarsStandForLettersOfOneName) {
  EXPECT_TRUE(fits("data/*.jsonl", "data/a.jsonl"));
  EXPECT_TRUE(fits("./data//*.jsonl", "data/a.jsonl"));
  EXPECT_FALSE(fits("data/*.jsonl", "data/b/a.jsonl"));
  EXPECT_FALSE(fits("*.jsonl", "a.jsonl.gz"));
  EXPECT_TRUE(fits("*a*b*c", "xaybzc"));
  EXPECT_TRUE(fits("*aab", "aaaab")) << "the last star takes more";
  EXPECT_FALSE(fits("*a*b*c", "xaybz"));
  EXPECT_TRUE(fits("*", "a"));
  EXPECT_TRUE(fits("a*", "a"));
}

TEST(PathPattern, QuestionMarksAndSetsTakeOneLetter) {
  EXPECT_TRUE(fits("part?.json", "part1.json"));
  EXPECT_FALSE(fits("part?.json", "part12.json"));
  EXPECT_TRUE(fits("?.json", "é.json")) << "a letter of two bytes";
  EXPECT_TRUE(fits("[a-c]x", "bx"));
  EXPECT_FALSE(fits("[a-c]x", "dx"));
  EXPECT_TRUE(fits("[!a-c]x", "dx"));
  EXPECT_TRUE(fits("[^a-c]x", "dx"));
  EXPECT_TRUE(fits("[à-ü]x", "éx"));
  EXPECT_TRUE(fits("[]]x", "]x"));
  EXPECT_TRUE(fits("[-a]x", "-x"));
  EXPECT_TRUE(fits("a[", "a[")) << "a bracket that nothing closes is a letter";
  EXPECT_TRUE(fits("[[]1]", "[1]"));
}

TEST(PathPattern, TwoStarsStandForFolders) {
  for (const char* path : {"a.jsonl", "x/a.jsonl", "x/y/a.jsonl"}) {
    EXPECT_TRUE(fits("**/*.jsonl", path)) << path;
    EXPECT_TRUE(fits("**", path)) << path;
    EXPECT_TRUE(fits("**/**", path)) << path;
  }
  EXPECT_TRUE(fits("a/**/b/c", "a/b/c"));
  EXPECT_TRUE(fits("a/**/b/c", "a/x/b/y/b/c"));
  EXPECT_FALSE(fits("a/**/b/c", "a/b/x/c"));
  EXPECT_TRUE(fits("a/**", "a/x/y"));
  EXPECT_FALSE(fits("a/**", "a"));
  EXPECT_TRUE(contains(user_error_of([] { PathPattern("data/**.jsonl"); }), "as in **/*.jsonl"));
}

TEST(PathPattern, TakesManyStarsInShortTime) {
  std::string pattern;
  std::string path;
  for (int i = 0; i < 200; ++i) {
    pattern += "**/*a*a*a*b/";
    path += "aaaaaaaaaaaaaaaaaaaa/";
  }
  EXPECT_FALSE(fits(pattern + "c", path + "d"));
}

TEST(PathPattern, WhatIsHiddenHasToBeNamed) {
  EXPECT_FALSE(fits("*.jsonl", ".a.jsonl"));
  EXPECT_TRUE(fits(".*.jsonl", ".a.jsonl"));
  EXPECT_FALSE(fits("**/a", ".git/a"));
  EXPECT_FALSE(fits("**", ".git/a"));
  EXPECT_FALSE(fits("**", "x/.a"));
  EXPECT_TRUE(fits(".git/*", ".git/a"));
  EXPECT_FALSE(fits("*/a", "__pycache__/a"));
  EXPECT_TRUE(fits("__*/a", "__pycache__/a"));
  EXPECT_TRUE(fits("*", "__a")) << "a file";
}

TEST(PathPattern, KnowsWhereToLook) {
  const PathPattern pattern("/data/x/*/y.jsonl");
  EXPECT_EQ(pattern.folder(), "/data/x/");
  EXPECT_EQ(pattern.depth(), 2);
  EXPECT_TRUE(pattern.below_folder().matches("z/y.jsonl"));
  EXPECT_EQ(PathPattern("*.jsonl").folder(), "");
  EXPECT_EQ(PathPattern("../d/*.jsonl").folder(), "../d/");
  EXPECT_EQ(PathPattern("a/**/b").depth(), 0);
  EXPECT_FALSE(PathPattern::is_pattern("data/a.jsonl"));
  EXPECT_TRUE(PathPattern::is_pattern("data/[1].jsonl"));
}

}  // namespace
}  // namespace snug::formats
