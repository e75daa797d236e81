// Answers that follow a JSON schema, against the library jsonschema
// (tests/goldens/json_forms.json).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "text/grammar/byte_automaton.h"
#include "text/grammar/schema_grammar.h"

namespace snug::text {
namespace {

using SchemaJson = nlohmann::ordered_json;

bool fits(ByteAutomaton& automaton, const std::string& text) {
  ByteAutomaton::State state = automaton.start();
  for (const char byte : text) {
    state = automaton.next(state, static_cast<uint8_t>(byte));
    if (state == ByteAutomaton::kDead) return false;
  }
  return automaton.may_end(state);
}

bool fits(const char* schema, const std::string& text) {
  ByteAutomaton automaton(schema_grammar(SchemaJson::parse(schema)));
  return fits(automaton, text);
}

TEST(SchemaGrammar, TextsFitThatAreValid) {
  std::ifstream file("tests/goldens/json_forms.json");
  const SchemaJson golden = SchemaJson::parse(file);
  ASSERT_GT(golden["cases"].size(), 30U);
  for (const SchemaJson& one : golden["cases"]) {
    ByteAutomaton automaton(schema_grammar(one["schema"]));
    const auto valid = one["valid"].get<std::set<size_t>>();
    for (size_t i = 0; i < golden["texts"].size(); ++i) {
      const auto text = golden["texts"][i].get<std::string>();
      const bool is_valid = valid.contains(i);
      EXPECT_EQ(fits(automaton, text), is_valid) << one["schema"] << " and " << text;
    }
  }
}

TEST(SchemaGrammar, Spelling) {
  EXPECT_TRUE(fits(R"({})", R"({"a": [1,2.5e-3, {"b":null}]})"));
  EXPECT_FALSE(fits(R"({})", "{ }"));
  EXPECT_FALSE(fits(R"({})", "{\"a\":  1}"));
  EXPECT_FALSE(fits(R"({})", "{\"a\":\n1}"));
  EXPECT_FALSE(fits(R"({})", "01"));
  EXPECT_TRUE(fits(R"({"type": "string"})", R"("\u00e9\ud83d\ude42\n\/é🙂")"));
  EXPECT_FALSE(fits(R"({"type": "string"})", R"("\ud83d")"));
  EXPECT_FALSE(fits(R"({"type": "string"})", "\"\n\""));
  EXPECT_TRUE(fits(R"({"type": "string", "maxLength": 2})", R"("\ud83d\ude42🙂")"));
  EXPECT_TRUE(fits(R"({"enum": ["a\"\n\u0001é"]})", "\"a\\\"\\n\\u0001é\""));
}

TEST(SchemaGrammar, OtherPropertiesHaveOtherNames) {
  const char* const schema = R"({"properties": {"a": {"type": "null"}, "ab\n": true, "é": true},
                                 "additionalProperties": {"type": "integer"}})";
  for (const char* name : {"b", "aa", "ab", "ab\\nc", "è", "", "\\\""})
    EXPECT_TRUE(fits(schema, "{\"" + std::string(name) + "\":1}")) << name;
  EXPECT_FALSE(fits(schema, R"({"a":1})"));
  EXPECT_FALSE(fits(schema, R"({"\u0061":1})"));
}

void expect_schema_refused(const char* schema, const std::string& why) {
  try {
    schema_grammar(SchemaJson::parse(schema));
    ADD_FAILURE() << schema << " is taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

TEST(SchemaGrammar, WhatCannotBeObeyedIsRefusedWithItsPath) {
  expect_schema_refused(R"({"properties": {"a/b": {"not": {}}}})", "'not' at #/properties/a~1b");
  expect_schema_refused(R"({"anyOf": [{}, {"uniqueItems": true}]})", "'uniqueItems' at #/anyOf/1");
  expect_schema_refused(R"({"type": "string", "format": "color"})", "the format 'color'");
  expect_schema_refused(R"({"type": "string", "pattern": "a", "maxLength": 3})",
                        "'maxLength' next");
  expect_schema_refused(R"j({"type": "string", "pattern": "(?=a)"})j", "a lookahead");
  expect_schema_refused(R"({"items": {"type": "text"}})", "the type \"text\" at #/items");
  expect_schema_refused(R"({"$ref": "other.json"})", "the reference 'other.json'");
  expect_schema_refused(R"({"$ref": "#/$defs/x"})", "which is of nothing");
  expect_schema_refused(R"({"type": "integer", "multipleOf": 7})", "'multipleOf' of 7");
  expect_schema_refused(R"({"type": "integer", "minimum": 5, "maximum": 4})", "no text fits");
  expect_schema_refused(R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})",
                        "no text fits");
  expect_schema_refused(R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})", "begins with itself");
  expect_schema_refused(R"({"$ref": "#", "type": "null"})", "without end");
}

TEST(SchemaGrammar, WhatIsTooLargeIsRefused) {
  expect_schema_refused(R"({"type": "string", "maxLength": 100000000})",
                        "'maxLength' of 100000000");
  expect_schema_refused(R"({"items": {"type": "string", "maxLength": 131072}})", "an automaton");
}

// Two alternatives that begin alike at every depth: the ways to read a text double with each.
TEST(SchemaGrammar, AmbiguityCostsLittle) {
  const char* const schema = R"({"anyOf": [
      {"properties": {"x": {"$ref": "#"}, "y": {"type": "null"}}, "required": ["x", "y"]},
      {"properties": {"x": {"$ref": "#"}, "z": {"type": "null"}}, "required": ["x", "z"]},
      {"type": "null"}]})";
  std::string text = "null";
  for (int i = 0; i < 300; ++i)
    text = "{\"x\":" + text + (i % 2 == 0 ? ",\"y\":null}" : ", \"z\":null}");
  EXPECT_TRUE(fits(schema, text));
}

// A schema with parts that were put elsewhere is read or refused.
TEST(SchemaGrammar, RandomSchemasAreReadOrRefused) {
  std::ifstream file("tests/goldens/json_forms.json");
  const SchemaJson golden = SchemaJson::parse(file);
  std::vector<SchemaJson> parts;
  for (const SchemaJson& one : golden["cases"]) {
    if (!one["schema"].is_object()) continue;
    for (const auto& [key, value] : one["schema"].items()) parts.push_back({{key, value}});
  }
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    SchemaJson schema = SchemaJson::object();
    for (size_t j = random() % 4; j > 0; --j) schema.update(parts[random() % parts.size()]);
    if (random() % 2 == 0) schema = {{"allOf", {schema, parts[random() % parts.size()]}}};
    try {
      ByteAutomaton automaton(schema_grammar(schema));
      EXPECT_FALSE(fits(automaton, "x"));
    } catch (const std::invalid_argument&) {
    }
  }
}

}  // namespace
}  // namespace snug::text
