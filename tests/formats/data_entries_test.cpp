// Sources of records as recipes write them.
#include "formats/recipe/data_entries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "../base/temporary_folder.h"
#include "formats/recipe/recipe.h"

namespace snug::formats {
namespace {

using testing::contains;
using Overrides = std::vector<std::string>;

Recipe recipe_of(const std::string& yaml, const Overrides& overrides = {}) {
  return parse_recipe(yaml, "r.yaml", overrides);
}

bool has_all(const std::string& text, std::initializer_list<const char*> parts) {
  return std::ranges::all_of(parts, [&](const char* part) { return contains(text, part); });
}

std::string mistake_of(const std::string& yaml, const Overrides& overrides = {}) {
  return testing::user_error_of([&] { recipe_of(yaml, overrides); });
}

TEST(DataEntries, ArePathsAndMapsAndListsOfThese) {
  EXPECT_EQ(recipe_of("data: a.jsonl").data, (std::vector<DataEntry>{{.path = "a.jsonl"}}));
  EXPECT_EQ(recipe_of("data: 'my file, v2.jsonl'").data[0].path, "my file, v2.jsonl");
  EXPECT_EQ(
      recipe_of("data: [a.jsonl, {path: b.csv, weight: 0.5, limit: 10}]").data,
      (std::vector<DataEntry>{{.path = "a.jsonl"}, {.path = "b.csv", .weight = 0.5, .limit = 10}}));
  EXPECT_EQ(recipe_of("data:\n  path: org/name\n  config: main\n  split: test\n").data,
            (std::vector<DataEntry>{{.path = "org/name", .config = "main", .split = "test"}}));
  EXPECT_EQ(recipe_of("data: [{path: org/name, name: main}]").data[0].config, "main");
}

TEST(DataEntries, HaveTheirOwnFieldsRolesAndForm) {
  const Recipe recipe = recipe_of(
      "data:\n"
      "  - path: a.jsonl\n"
      "    data_format: prompt_completion\n"
      "    fields: {prompt: question, completion: ['{a}: {b}', a]}\n"
      "    roles: {customer: user}\n"
      "    ignore_fields: [x, y]\n");
  ASSERT_EQ(recipe.data.size(), 1U);
  EXPECT_EQ(recipe.data[0].data_format, DataFormat::prompt_completion);
  EXPECT_EQ(recipe.data[0].fields,
            (std::vector<std::string>{"prompt=question", R"(completion=["{a}: {b}","a"])"}));
  EXPECT_EQ(recipe.data[0].roles, (std::vector<std::string>{"customer=user"}));
  EXPECT_EQ(recipe.data[0].ignore_fields, (std::vector<std::string>{"x", "y"}));
}

TEST(DataEntries, OfAMapOfNamesAreSetsOfTheseNames) {
  const Recipe recipe =
      recipe_of("eval_data: {easy: a.jsonl, hard: {path: b.jsonl, limit: 5}, path2: [c, d]}");
  EXPECT_EQ(recipe.eval_data,
            (std::vector<DataEntry>{{.path = "a.jsonl", .name = "easy"},
                                    {.path = "b.jsonl", .name = "hard", .limit = 5},
                                    {.path = "c", .name = "path2"},
                                    {.path = "d", .name = "path2"}}));
}

TEST(DataEntries, ComeFromTheCommandLine) {
  EXPECT_EQ(recipe_of("", {"data=my file.jsonl"}).data[0].path, "my file.jsonl");
  EXPECT_EQ(recipe_of("", {"data=[a.jsonl,b.jsonl]"}).data.size(), 2U);
  EXPECT_EQ(recipe_of("", {"data={path: a, repeats: 2}"}).data[0].repeats, 2);
  EXPECT_EQ(recipe_of("", {"data=[ab].jsonl"}).data[0].path, "[ab].jsonl");
  EXPECT_EQ(recipe_of("", {"data=a", "data.split=test", "data.limit=7"}).data,
            (std::vector<DataEntry>{{.path = "a", .split = "test", .limit = 7}}));
  EXPECT_EQ(recipe_of("data: {path: a, config: c}", {"data.split=test"}).data,
            (std::vector<DataEntry>{{.path = "a", .config = "c", .split = "test"}}));
  EXPECT_EQ(recipe_of("", {"data.limit=7", "data=a"}).data[0].limit, 7);
  EXPECT_EQ(recipe_of("", {"data=a", "data.fields.prompt=q", "data.fields.completion=r"}).data,
            (std::vector<DataEntry>{{.path = "a", .fields = {"prompt=q", "completion=r"}}}));
  EXPECT_EQ(recipe_of("data: {path: a, config: c}", {"data=b"}).data,
            (std::vector<DataEntry>{{.path = "b"}}));
  EXPECT_EQ(recipe_of("data: {path: a, config: c}", {"data={path: b}"}).data,
            (std::vector<DataEntry>{{.path = "b"}}));
}

TEST(DataEntries, AreTakenBackAsTheyArePrinted) {
  const std::vector<DataEntry> entries{
      {.path = "a, b.jsonl"},
      {.path = "[c]"},
      {.path = "{d}"},
      {.path = "e: f"},
      {.path = "g",
       .config = "main",
       .split = "train",
       .weight = 0.1,
       .limit = 3,
       .data_format = DataFormat::text,
       .fields = {"text={title}\n\n{body}", "x=y", R"(y=["{a}: \"b\"",""])"},
       .roles = {"a b=user"},
       .ignore_fields = {"one"}},
      {.path = "h", .repeats = 2.5}};
  EXPECT_EQ(recipe_of("data: " + entries_text(entries)).data, entries);
  for (const DataEntry& entry : entries)
    EXPECT_EQ(recipe_of("data: " + entry_text(entry)).data, std::vector<DataEntry>{entry})
        << entry_text(entry);
  const Recipe recipe = recipe_of("", {"data=" + entries_text(entries)});
  EXPECT_EQ(recipe.data, entries);
  EXPECT_EQ(recipe_of(to_yaml(recipe)).data, entries);
}

TEST(DataEntries, TellOfMistakes) {
  EXPECT_TRUE(has_all(mistake_of("data: [{path: a, wieght: 2}]"), {"wieght", "weight"}));
  EXPECT_TRUE(has_all(mistake_of("data: [{path: a, weight: 0}]"), {"data.weight", "above 0"}));
  EXPECT_TRUE(has_all(mistake_of("data: [{path: a, limit: many}]"), {"data.limit", "many"}));
  EXPECT_TRUE(has_all(mistake_of("data: [{split: test}]"), {"without a path"}));
  EXPECT_TRUE(has_all(mistake_of("", {"data.split=test"}), {"without a path"}));
  EXPECT_TRUE(has_all(mistake_of("data: [a, a]"), {"twice", "repeats: 2"}));
  EXPECT_TRUE(has_all(mistake_of("data: {train: a, test: b}"), {"'train'", "eval_data"}));
  EXPECT_TRUE(has_all(mistake_of("data: a", {"data={}"}), {"without a path"}));
  EXPECT_TRUE(has_all(mistake_of("", {"data={path:a}"}), {"a space after the colon"}));
  EXPECT_TRUE(has_all(mistake_of("", {"data={path: a, split: train[:9]}"}), {"need quotes"}));
  EXPECT_TRUE(has_all(mistake_of("data:\n  - path: a\n    path: b\n"), {"'path' twice", "dash"}));
  EXPECT_TRUE(has_all(mistake_of("", {"data={path: a, path: b}"}), {"'path' twice"}));
  EXPECT_TRUE(has_all(mistake_of("weight: 2"), {"'weight' belongs to a source of data"}));
  EXPECT_TRUE(has_all(mistake_of("data: [{path: a, weight: 1, repeats: 2}]"), {"keep one"}));
  EXPECT_TRUE(has_all(mistake_of("data: []"), {"expected a file"}));
  EXPECT_TRUE(has_all(mistake_of("val_set_size: 1.5"), {"whole number of records"}));
}

}  // namespace
}  // namespace snug::formats
