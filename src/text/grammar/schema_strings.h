// Strings and numbers of a JSON schema as parts of a grammar.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "text/grammar/json_grammar.h"

namespace snug::text {

// A string by minLength, maxLength, pattern and format, and a number by its bounds and multipleOf.
// They throw std::invalid_argument, which names `path`, for what cannot be obeyed.
PlaceId add_schema_string(GrammarBuilder& builder, JsonGrammar& json,
                          const nlohmann::ordered_json& schema, const std::string& path,
                          PlaceId next);
PlaceId add_schema_number(GrammarBuilder& builder, JsonGrammar& json,
                          const nlohmann::ordered_json& schema, const std::string& path,
                          PlaceId next);

// The count under a keyword, or `fallback`.
int64_t schema_count(const nlohmann::ordered_json& schema, const char* keyword, int64_t fallback,
                     const std::string& path);

}  // namespace snug::text
