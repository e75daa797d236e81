#include "text/grammar/schema_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

namespace snug::text {
namespace {

using SchemaJson = nlohmann::ordered_json;

// The types of both; an integer is a number.
SchemaJson common_types(const SchemaJson& one, const SchemaJson& other) {
  const auto list = [](const SchemaJson& types) {
    return types.is_array() ? types : SchemaJson::array({types});
  };
  SchemaJson common = SchemaJson::array();
  for (const SchemaJson& a : list(one))
    for (const SchemaJson& b : list(other)) {
      if (a == b) common.push_back(a);
      if ((a == "integer" && b == "number") || (a == "number" && b == "integer"))
        common.push_back("integer");
    }
  return common;
}

SchemaJson both_of(const SchemaJson& one, const SchemaJson& other) {
  return SchemaJson{{"allOf", SchemaJson::array({one, other})}};
}

SchemaJson united(SchemaJson list, const SchemaJson& other) {
  for (const SchemaJson& item : other)
    if (std::ranges::find(list, item) == list.end()) list.push_back(item);
  return list;
}

SchemaJson common_values(const SchemaJson& one, const SchemaJson& other) {
  SchemaJson common = SchemaJson::array();
  for (const SchemaJson& item : one)
    if (std::ranges::find(other, item) != other.end()) common.push_back(item);
  return common;
}

SchemaJson merged_properties(SchemaJson one, const SchemaJson& other) {
  for (const auto& [name, schema] : other.items())
    one[name] = one.contains(name) ? both_of(one[name], schema) : schema;
  return one;
}

SchemaJson merged_keyword(const std::string& key, const SchemaJson& a, const SchemaJson& b,
                          const std::string& path) {
  constexpr std::array<std::string_view, 5> kLeast = {"minimum", "exclusiveMinimum", "minLength",
                                                      "minItems", "minProperties"};
  constexpr std::array<std::string_view, 5> kMost = {"maximum", "exclusiveMaximum", "maxLength",
                                                     "maxItems", "maxProperties"};
  if (a == b || is_annotation(key)) return b;
  const bool are_numbers = a.is_number() && b.is_number();
  if (are_numbers && std::ranges::find(kLeast, key) != kLeast.end()) return std::max(a, b);
  if (are_numbers && std::ranges::find(kMost, key) != kMost.end()) return std::min(a, b);
  if (key == "type") return common_types(a, b);
  if (key == "enum" && a.is_array() && b.is_array()) return common_values(a, b);
  if (key == "required" && a.is_array() && b.is_array()) return united(a, b);
  if (key == "properties" && a.is_object() && b.is_object()) return merged_properties(a, b);
  if (key == "items") return both_of(a, b);
  refuse_schema(fmt::format("two values of '{}' that hold together", key), path);
}

// What one schema closes, the other must not open.
void check_closed(const SchemaJson& closed, const SchemaJson& other, const std::string& path) {
  if (!closed.contains("additionalProperties") || closed["additionalProperties"] == true) return;
  if (!other.contains("properties")) return;
  const SchemaJson known =
      closed.contains("properties") ? closed["properties"] : SchemaJson::object();
  for (const auto& [name, schema] : other["properties"].items())
    if (!known.contains(name))
      refuse_schema(fmt::format("the property '{}' next to 'additionalProperties' of another "
                                "schema that holds too",
                                name),
                    path);
}

}  // namespace

bool is_annotation(const std::string& keyword) {
  constexpr std::array<std::string_view, 21> kAnnotations = {
      "$schema",         "$id",          "$comment",
      "$anchor",         "$vocabulary",  "$defs",
      "definitions",     "title",        "description",
      "default",         "example",      "examples",
      "deprecated",      "readOnly",     "writeOnly",
      "discriminator",   "xml",          "contentMediaType",
      "contentEncoding", "externalDocs", "enumNames"};
  return keyword.starts_with("x-") ||
         std::ranges::find(kAnnotations, keyword) != kAnnotations.end();
}

SchemaJson merge_schemas(const SchemaJson& one, const SchemaJson& other, const std::string& path) {
  if (one == false || other == true) return one;
  if (one == true || other == false) return other;
  if (!one.is_object() || !other.is_object()) refuse_schema("what is no schema", path);
  check_closed(one, other, path);
  check_closed(other, one, path);
  SchemaJson merged = one;
  SchemaJson together = SchemaJson::array();
  for (const auto& [key, value] : other.items()) {
    if (!merged.contains(key)) {
      merged[key] = value;
    } else if ((key == "$ref" || key == "anyOf" || key == "oneOf" || key == "allOf") &&
               merged[key] != value) {
      together.push_back(SchemaJson{{key, value}});  // which allOf puts together one by one
    } else {
      merged[key] = merged_keyword(key, merged[key], value, path);
    }
  }
  if (together.empty()) return merged;
  if (merged.contains("allOf"))
    for (const SchemaJson& item : merged["allOf"]) together.push_back(item);
  merged["allOf"] = together;
  return merged;
}

SchemaJson without_keywords(SchemaJson schema, std::initializer_list<const char*> keywords) {
  for (const char* keyword : keywords) schema.erase(keyword);
  return schema;
}

void refuse_schema(const std::string& what, const std::string& path) {
  throw std::invalid_argument(
      fmt::format("the JSON schema has {} at {}, to which no answer can be held", what, path));
}

}  // namespace snug::text
