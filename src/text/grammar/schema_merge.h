// Several JSON schemas that hold together, as one: those of allOf, and what stands next to $ref,
// anyOf and oneOf. Pure functions; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace snug::text {

// Keywords that say nothing of which values are valid.
bool is_annotation(const std::string& keyword);

// A schema whose values are valid under both. Throws std::invalid_argument, which names `path`, for
// two values of a keyword that cannot be put together.
nlohmann::ordered_json merge_schemas(const nlohmann::ordered_json& one,
                                     const nlohmann::ordered_json& other, const std::string& path);

// `schema` without these keywords.
nlohmann::ordered_json without_keywords(nlohmann::ordered_json schema,
                                        std::initializer_list<const char*> keywords);

// Throws std::invalid_argument: `what` stands in the schema at `path`.
[[noreturn]] void refuse_schema(const std::string& what, const std::string& path);

}  // namespace snug::text
