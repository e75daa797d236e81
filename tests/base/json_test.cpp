#include "base/json.h"

#include "base/json_parser.h"

#include "temporary_folder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace snug::base {
namespace {

using testing::contains;
using testing::user_error_of;

std::string error_in(std::string_view text) {
  return user_error_of([&] { parse_json(text, "a.json"); });
}

TEST(Json, SyntaxErrorsCarryLineAndColumn) {
  EXPECT_TRUE(contains(error_in("{\n  \"a\": 1,\n  \"b\": }\n"), "a.json:3:8: not valid JSON"));
  EXPECT_TRUE(contains(error_in(""), "a.json:1:1: not valid JSON"));
  EXPECT_TRUE(contains(error_in("{} {}"), "a.json:1:4: not valid JSON"));
  EXPECT_TRUE(contains(error_in("[1e999]"), "not valid JSON"));
  EXPECT_TRUE(contains(error_in("\"\xff\""), "not valid JSON"));
}

TEST(Json, ErrorsQuoteBytesThatAreNoTextAsNumbers) {
  const std::string error = error_in("\xff\xfe{}");
  EXPECT_TRUE(contains(error, "not valid JSON"));
  EXPECT_TRUE(contains(error, "\\xff"));
  for (const char* broken : {"\"\xff\"", "\"\xe4\xbd\"", "\"a\xc0\xaf\"", "[\xf5]"})
    for (const char letter : error_in(broken)) EXPECT_GE(letter, ' ') << error_in(broken);
  EXPECT_TRUE(contains(error_in("\"\u00e9\u4f60\n\""), "\u00e9\u4f60"));
}

TEST(Json, KeysGivenTwiceAreRefused) {
  EXPECT_TRUE(
      contains(error_in("{\"a\": 1,\n \"a\": 2}"), "a.json:2:4: the key \"a\" is given twice"));
  EXPECT_EQ(error_in(R"([{"a": 1}, {"a": {"a": 2}}])"), "(no error)");
}

// What reads and prints a document afterwards does so by recursion.
TEST(Json, DeepNestingIsRefused) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(error_in(nested(kMaxJsonDepth)), "(no error)");
  EXPECT_TRUE(
      contains(error_in(nested(kMaxJsonDepth + 1)), "a.json:1:65: values nest deeper than 64"));
  EXPECT_TRUE(contains(error_in(nested(100'000)), "nest deeper than 64"));
  EXPECT_TRUE(contains(error_in(std::string(1'000'000, '[')), "nest deeper than 64"));
  EXPECT_EQ(error_in("\"" + std::string(1'000, '[') + "\\\"{\""), "(no error)")
      << "text nests nothing";
  std::string wide = "[[]";
  for (int i = 0; i < 1'000; ++i) wide += ",[{}]";
  EXPECT_EQ(error_in(wide + "]"), "(no error)");
}

class JsonObjectTest : public ::testing::Test {
 protected:
  const nlohmann::json document_ = parse_json(
      R"({"n": 3, "f": 0.5, "w": 32.0, "big": 18446744073709551615, "t": "x", "b": true,
          "none": null, "list": ["a", "b"], "mixed": ["a", 1], "o": {"k": 1}})",
      "c.json");
  const JsonObject object_{document_, "c.json"};
};

TEST_F(JsonObjectTest, ReadsTypedValues) {
  EXPECT_EQ(object_.integer("n"), 3);
  EXPECT_EQ(object_.integer("w"), 32);
  EXPECT_EQ(object_.number("f"), 0.5);
  EXPECT_EQ(object_.number("n"), 3.0);
  EXPECT_TRUE(object_.boolean("b"));
  EXPECT_EQ(object_.text("t"), "x");
  EXPECT_EQ(object_.texts("list"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(object_.object("o").integer("k"), 1);
}

TEST_F(JsonObjectTest, NullCountsAsAbsent) {
  EXPECT_FALSE(object_.has("none"));
  EXPECT_EQ(object_.integer_or("none", 7), 7);
  EXPECT_EQ(object_.text_or("missing", "d"), "d");
}

TEST_F(JsonObjectTest, ErrorsNameFileKeyAndWhatWasFound) {
  const auto error = [&](auto read) { return user_error_of([&] { read(object_); }); };
  EXPECT_TRUE(contains(error([](auto& o) { o.integer("gone"); }),
                       "c.json: 'gone' is missing; expected a whole number"));
  EXPECT_TRUE(contains(error([](auto& o) { o.integer("f"); }),
                       "c.json: 'f' must be a whole number, but is the number 0.5"));
  EXPECT_TRUE(contains(error([](auto& o) { o.integer("big"); }), "too large"));
  EXPECT_TRUE(contains(error([](auto& o) { o.number("t"); }), "'t' must be a number"));
  EXPECT_TRUE(contains(error([](auto& o) { o.boolean("n"); }), "'n' must be true or false"));
  EXPECT_TRUE(contains(error([](auto& o) { o.text("b"); }), "'b' must be text, but is boolean"));
  EXPECT_TRUE(contains(error([](auto& o) { o.texts("mixed"); }), "holds the number 1"));
  EXPECT_TRUE(contains(error([](auto& o) { o.object("o").text("k"); }), "'o.k' must be text"));
  EXPECT_TRUE(contains(error([](auto& o) { o.object("t"); }), "'t' must hold a JSON object"));
}

TEST(Json, MissingFileIsNamed) {
  EXPECT_TRUE(contains(user_error_of([] { read_json_file("no/such.json"); }),
                       "cannot read no/such.json: No such file or directory"));
}

}  // namespace
}  // namespace snug::base
