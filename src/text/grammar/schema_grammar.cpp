#include "text/grammar/schema_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/json_parser.h"
#include "text/grammar/json_grammar.h"
#include "text/grammar/schema_merge.h"
#include "text/grammar/schema_strings.h"

namespace snug::text {
namespace {

using SchemaJson = nlohmann::ordered_json;

// References and alternatives within one another before anything is read; real schemas have few.
constexpr int kMaxNestedSchemas = 200;

struct TypeKeywords {
  std::string_view type;
  std::array<std::string_view, 9> keywords;
};
constexpr std::array<TypeKeywords, 6> kTypes = {{
    {"object",
     {"properties", "required", "additionalProperties", "minProperties", "maxProperties",
      "unevaluatedProperties"}},
    {"array",
     {"items", "prefixItems", "minItems", "maxItems", "additionalItems", "uniqueItems",
      "unevaluatedItems"}},
    {"string", {"minLength", "maxLength", "pattern", "format"}},
    {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
    {"boolean", {}},
    {"null", {}},
}};
constexpr std::array<std::string_view, 8> kAnyType = {"type",  "enum",  "const", "$ref",
                                                      "allOf", "anyOf", "oneOf", "nullable"};

bool is_of(const TypeKeywords& type, const std::string& keyword) {
  return !keyword.empty() && std::ranges::find(type.keywords, keyword) != type.keywords.end();
}

// A part of a path, as JSON pointers write it.
std::string pointer_part(std::string name) {
  for (size_t at = 0; (at = name.find_first_of("~/", at)) != std::string::npos; at += 2)
    name.replace(at, 1, name[at] == '~' ? "~0" : "~1");
  return name;
}

class SchemaBuilder {
 public:
  SchemaBuilder(const SchemaJson& document, GrammarBuilder& builder)
      : document_(document), builder_(builder) {}

  RuleId run() {
    const RuleId root = rule_of("#");
    try {
      for (; !waiting_.empty(); waiting_.pop_front()) {
        const auto& [path, rule] = waiting_.front();
        builder_.start(rule, value(resolved(path), path, builder_.end()));
      }
    } catch (const GrammarTooLarge& error) {
      throw std::invalid_argument(
          fmt::format("the JSON schema {}, at {}", error.what(), waiting_.front().first));
    }
    return root;
  }

 private:
  RuleId rule_of(const std::string& path) {
    const auto [at, is_new] = rules_.try_emplace(path, 0);
    if (is_new) {
      at->second = builder_.rule("the value of the schema at " + path);
      waiting_.emplace_back(path, at->second);
    }
    return at->second;
  }

  const SchemaJson& resolved(const std::string& reference) const {
    if (!reference.starts_with('#') || (reference.size() > 1 && reference[1] != '/'))
      refuse_schema(fmt::format("the reference '{}'; references within the schema, such as "
                                "#/$defs/NAME, can be followed",
                                reference),
                    "'$ref'");
    try {
      return document_.at(SchemaJson::json_pointer(reference.substr(1)));
    } catch (const nlohmann::json::exception&) {
      refuse_schema(fmt::format("the reference '{}', which is of nothing in it", reference),
                    "'$ref'");
    }
  }

  PlaceId value(const SchemaJson& schema, const std::string& path, PlaceId next) {
    builder_.count_work();
    if (schema == true) return json_.any_value(next);
    if (schema == false) return builder_.dead();
    if (!schema.is_object()) refuse_schema("what is no schema", path);
    if (++depth_ > kMaxNestedSchemas)
      refuse_schema("references or alternatives that go on without end", path);
    const PlaceId place = of_object(schema, path, next);
    --depth_;
    return place;
  }

  PlaceId of_object(const SchemaJson& schema, const std::string& path, PlaceId next) {
    if (schema.contains("$ref")) return of_reference(schema, path, next);
    if (schema.contains("allOf")) {
      SchemaJson all = without_keywords(schema, {"allOf"});
      for (const SchemaJson& one : list_of(schema, "allOf", path))
        all = merge_schemas(all, expanded(one), path);
      return value(all, path, next);
    }
    for (const char* keyword : {"anyOf", "oneOf"})
      if (schema.contains(keyword)) return of_alternatives(schema, keyword, path, next);
    check_keywords(schema, path);
    if (schema.value("nullable", SchemaJson()) == true)
      return builder_.fork(builder_.text("null", next),
                           value(without_keywords(schema, {"nullable"}), path, next));
    if (schema.contains("const") || schema.contains("enum")) return of_values(schema, path, next);
    return of_types(schema, path, next);
  }

  // A schema whose own reference is put in its place.
  SchemaJson expanded(const SchemaJson& schema) {
    if (!schema.is_object() || !schema.contains("$ref")) return schema;
    if (++depth_ > kMaxNestedSchemas)
      refuse_schema("references that go on without end", schema["$ref"].dump());
    const SchemaJson whole =
        merge_schemas(without_keywords(schema, {"$ref"}), expanded(resolved(reference(schema, ""))),
                      schema["$ref"].dump());
    --depth_;
    return whole;
  }

  static std::string reference(const SchemaJson& schema, const std::string& path) {
    if (!schema["$ref"].is_string()) refuse_schema("a '$ref' that is no text", path);
    return schema["$ref"].get<std::string>();
  }

  PlaceId of_reference(const SchemaJson& schema, const std::string& path, PlaceId next) {
    const std::string target = reference(schema, path);
    resolved(target);
    const bool is_alone = std::ranges::all_of(schema.items(), [](const auto& item) {
      return item.key() == "$ref" || is_annotation(item.key());
    });
    if (is_alone) return builder_.call(rule_of(target), next);
    return value(expanded(schema), path, next);
  }

  static const SchemaJson& list_of(const SchemaJson& schema, const char* keyword,
                                   const std::string& path) {
    const SchemaJson& list = schema[keyword];
    if (!list.is_array() || list.empty())
      refuse_schema(fmt::format("'{}' that is no list of schemas", keyword), path);
    return list;
  }

  // What stands next to the alternatives holds for each of them.
  PlaceId of_alternatives(const SchemaJson& schema, const char* keyword, const std::string& path,
                          PlaceId next) {
    const SchemaJson& alternatives = list_of(schema, keyword, path);
    const SchemaJson others = without_keywords(schema, {keyword});
    const bool is_alone = std::ranges::all_of(
        others.items(), [](const auto& item) { return is_annotation(item.key()); });
    PlaceId place = builder_.dead();
    for (size_t i = alternatives.size(); i > 0; --i) {
      const std::string at = fmt::format("{}/{}/{}", path, keyword, i - 1);
      const SchemaJson& one = alternatives[i - 1];
      const PlaceId here = is_alone ? value(one, at, next)
                                    : value(merge_schemas(others, expanded(one), at), at, next);
      place = builder_.fork(here, place);
    }
    return place;
  }

  static void check_keywords(const SchemaJson& schema, const std::string& path) {
    for (const auto& [key, meaning] : schema.items()) {
      const std::string& name = key;
      const bool is_known =
          is_annotation(name) || std::ranges::find(kAnyType, name) != kAnyType.end() ||
          std::ranges::any_of(kTypes, [&](const auto& type) { return is_of(type, name); });
      if (!is_known) refuse_schema(fmt::format("'{}'", name), path);
    }
  }

  // The values of enum or const that have a type of the schema.
  PlaceId of_values(const SchemaJson& schema, const std::string& path, PlaceId next) {
    SchemaJson values = SchemaJson::array();
    if (schema.contains("enum"))
      values = list_of(schema, "enum", path);
    else
      values.push_back(schema["const"]);
    for (const auto& [key, meaning] : schema.items())
      if (!is_annotation(key) && key != "enum" && key != "const" && key != "type")
        refuse_schema(fmt::format("'{}' next to 'enum' or 'const'", key), path);
    PlaceId place = builder_.dead();
    for (size_t i = values.size(); i > 0; --i) {
      const SchemaJson& one = values[i - 1];
      const bool is_const = !schema.contains("const") || schema["const"] == one;
      if (is_const && has_type(schema, one)) place = builder_.fork(json_.literal(one, next), place);
    }
    return place;
  }

  static bool has_type(const SchemaJson& schema, const SchemaJson& value) {
    if (!schema.contains("type")) return true;
    const auto is_one = [&](const SchemaJson& type) {
      if (type == "number") return value.is_number();
      if (type == "integer") return value.is_number_integer();
      return type == value.type_name();
    };
    const SchemaJson& type = schema["type"];
    return type.is_array() ? std::ranges::any_of(type, is_one) : is_one(type);
  }

  PlaceId of_types(const SchemaJson& schema, const std::string& path, PlaceId next) {
    const SchemaJson types = types_of(schema, path);
    if (types.is_null()) return json_.any_value(next);
    PlaceId place = builder_.dead();
    for (size_t i = types.size(); i > 0; --i) {
      SchemaJson one = schema;
      one["type"] = types[i - 1];
      place = builder_.fork(of_type(one, path, next), place);
    }
    return place;
  }

  // Those that the schema names, else those of its keywords; null: any.
  static SchemaJson types_of(const SchemaJson& schema, const std::string& path) {
    if (schema.contains("type")) {
      const SchemaJson& type = schema["type"];
      return type.is_array() ? type : SchemaJson::array({type});
    }
    SchemaJson types;
    for (const TypeKeywords& type : kTypes)
      for (const auto& [key, meaning] : schema.items())
        if (is_of(type, key) && (types.is_null() || types.back() != type.type))
          types.push_back(std::string(type.type));
    if (types.size() > 1) refuse_schema("keywords of several types and no 'type'", path);
    return types;
  }

  PlaceId of_type(const SchemaJson& schema, const std::string& path, PlaceId next) {
    const SchemaJson& type = schema["type"];
    if (type == "object") return object(schema, path, next);
    if (type == "array") return array(schema, path, next);
    if (type == "string") return add_schema_string(builder_, json_, schema, path, next);
    if (type == "number" || type == "integer")
      return add_schema_number(builder_, json_, schema, path, next);
    if (type == "boolean")
      return builder_.fork(builder_.text("true", next), builder_.text("false", next));
    if (type == "null") return builder_.text("null", next);
    refuse_schema(fmt::format("the type {}", type.dump()), path);
  }

  struct Property {
    std::string name;
    SchemaJson schema;
    std::string path;
    bool is_required = false;
  };

  // Those that are listed, then those that are only required.
  std::vector<Property> properties_of(const SchemaJson& schema, const SchemaJson& others,
                                      const std::string& path) {
    std::vector<Property> properties;
    const SchemaJson listed = schema.value("properties", SchemaJson::object());
    if (!listed.is_object()) refuse_schema("'properties' that is no object", path);
    for (const auto& [name, one] : listed.items())
      properties.push_back(
          {name, one, fmt::format("{}/properties/{}", path, pointer_part(name)), false});
    const SchemaJson required = schema.value("required", SchemaJson::array());
    if (required.is_boolean()) refuse_schema("'required' that is no list of names", path);
    for (const SchemaJson& name : required) {
      if (!name.is_string()) refuse_schema("'required' that is no list of names", path);
      auto at = std::ranges::find(properties, name.get<std::string>(), &Property::name);
      if (at == properties.end())
        at = properties.insert(at, {name.get<std::string>(), others, path, true});
      at->is_required = true;
    }
    return properties;
  }

  PlaceId object(const SchemaJson& schema, const std::string& path, PlaceId next) {
    const bool is_open = !schema.contains("properties");
    const char* const keyword =
        schema.contains("additionalProperties") ? "additionalProperties" : "unevaluatedProperties";
    SchemaJson others = schema.value(keyword, SchemaJson(is_open));
    const std::vector<Property> properties = properties_of(
        schema, others == false && !schema.contains(keyword) ? SchemaJson(true) : others, path);
    const auto required = std::ranges::count(properties, true, &Property::is_required);
    const int64_t least = schema_count(schema, "minProperties", 0, path);
    const int64_t most = schema_count(schema, "maxProperties", -1, path);
    if (properties.empty()) return map(others, path, {least, most}, next);
    if (least > required || (most >= 0 && most < std::ssize(properties)) ||
        (most >= 0 && others != false))
      refuse_schema("'minProperties' or 'maxProperties' next to properties", path);
    const PlaceId last = builder_.byte('}', next);
    PlaceId later = last;  // after another property
    PlaceId first = last;  // as the first one
    if (others != false) {
      later = builder_.open();
      const PlaceId pair = other_pair(others, properties, path, later);
      builder_.decide(later, json_.comma(pair), last);
      first = builder_.fork(pair, last);
    }
    for (size_t i = properties.size(); i > 0; --i) {
      const Property& one = properties[i - 1];
      const PlaceId pair = json_.literal(one.name, json_.colon(value(one.schema, one.path, later)));
      const PlaceId with_comma = json_.comma(pair);
      later = one.is_required ? with_comma : builder_.fork(with_comma, later);
      first = one.is_required ? pair : builder_.fork(pair, first);
    }
    return builder_.byte('{', first);
  }

  PlaceId other_pair(const SchemaJson& others, const std::vector<Property>& properties,
                     const std::string& path, PlaceId next) {
    std::vector<std::string> names;
    names.reserve(properties.size());
    for (const Property& one : properties) names.push_back(one.name);
    return json_.other_string(names,
                              json_.colon(value(others, path + "/additionalProperties", next)));
  }

  struct Counts {
    int64_t least = 0;
    int64_t most = -1;  // -1: no limit
  };

  PlaceId map(const SchemaJson& others, const std::string& path, Counts counts, PlaceId next) {
    const PlaceId last = builder_.byte('}', next);
    const RuleId rule = others == false ? -1 : item_rule(others, path + "/additionalProperties");
    const auto pair = [&](PlaceId after) {
      return rule < 0 ? builder_.dead() : json_.any_string(json_.colon(builder_.call(rule, after)));
    };
    return builder_.byte('{', separated(counts, last, pair));
  }

  // Items between commas, so many of them.
  template <typename Item>
  PlaceId separated(Counts counts, PlaceId last, Item item) {
    if (counts.most >= 0 && counts.most < counts.least) return builder_.dead();
    if (counts.most == 0) return last;
    PlaceId later = last;
    PlaceId first = last;
    if (counts.most < 0) {
      later = builder_.open();
      first = item(later);
      builder_.decide(later, json_.comma(first), last);
      first = builder_.fork(first, last);
      counts.most = counts.least;
    }
    for (int64_t i = counts.most; i > 0; --i) {
      const PlaceId one = item(later);
      const bool is_optional = i > counts.least;
      later = is_optional ? builder_.fork(json_.comma(one), last) : json_.comma(one);
      first = is_optional ? builder_.fork(one, last) : one;
    }
    return first;
  }

  PlaceId array(const SchemaJson& schema, const std::string& path, PlaceId next) {
    if (schema.value("uniqueItems", SchemaJson(false)) != false)
      refuse_schema("'uniqueItems'", path);
    SchemaJson rest = schema.value("items", SchemaJson(true));
    SchemaJson fixed = schema.value("prefixItems", SchemaJson::array());
    if (rest.is_array()) {  // as drafts 4 to 7 write it
      fixed = std::exchange(rest, schema.value("additionalItems", SchemaJson(true)));
    }
    const PlaceId last = builder_.byte(']', next);
    const Counts counts{schema_count(schema, "minItems", 0, path),
                        schema_count(schema, "maxItems", -1, path)};
    if (!fixed.empty()) return builder_.byte('[', tuple(fixed, rest, path, counts, last));
    const RuleId item = rest == false ? -1 : item_rule(rest, path + "/items");
    return builder_.byte('[', separated(counts, last, [&](PlaceId after) {
                           return item < 0 ? builder_.dead() : builder_.call(item, after);
                         }));
  }

  // What may come several times is a rule, which is built once.
  RuleId item_rule(const SchemaJson& schema, const std::string& path) {
    const RuleId rule = builder_.rule("the value of the schema at " + path);
    builder_.start(rule, value(schema, path, builder_.end()));
    return rule;
  }

  PlaceId tuple(const SchemaJson& fixed, const SchemaJson& rest, const std::string& path,
                Counts counts, PlaceId last) {
    const auto size = std::ssize(fixed);
    // As with properties, there are others only where they are asked for.
    const bool has_others = rest != false && rest != true;
    const int64_t most = counts.most < 0 ? (has_others ? -1 : size) : counts.most;
    if (has_others || most > size || counts.least > size)
      refuse_schema("more items than 'prefixItems' lists; give 'items': false", path);
    PlaceId later = last;
    PlaceId first = last;
    for (int64_t i = most; i > 0; --i) {
      const std::string at = fmt::format("{}/prefixItems/{}", path, i - 1);
      const PlaceId one = value(fixed[static_cast<size_t>(i - 1)], at, later);
      const bool is_optional = counts.least > 0 && i > counts.least;
      later = is_optional ? builder_.fork(json_.comma(one), last) : json_.comma(one);
      first = is_optional ? builder_.fork(one, last) : one;
    }
    return first;
  }

  const SchemaJson& document_;
  GrammarBuilder& builder_;
  JsonGrammar json_{builder_};
  std::map<std::string, RuleId> rules_;
  std::deque<std::pair<std::string, RuleId>> waiting_;  // rules that are to be built
  int depth_ = 0;
};

}  // namespace

RuleId add_schema(GrammarBuilder& builder, const SchemaJson& schema) {
  return SchemaBuilder(schema, builder).run();
}

ByteGrammar schema_grammar(const SchemaJson& schema) {
  GrammarBuilder builder;
  const RuleId root = add_schema(builder, schema);
  try {
    return builder.finish(root);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(
        fmt::format("the JSON schema cannot be followed: {}", error.what()));
  }
}

ByteGrammar schema_text_grammar(std::string_view schema, const std::string& name) {
  return schema_grammar(
      base::parse_ordered_json(schema, [&](const std::string& problem, size_t offset) {
        throw base::UserError(problem, base::location_in(schema, offset, name));
      }));
}

}  // namespace snug::text
