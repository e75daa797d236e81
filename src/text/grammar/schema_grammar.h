// JSON schemas (draft 2020-12, and what drafts 4 to 7 write differently) as grammars of the JSON
// texts that are valid. Narrower than the schema in a few ways, so that answers are those that
// people expect:
// - properties come in the schema's order;
// - an object with `properties` has no others, unless additionalProperties is true or a schema,
//   by which others follow after them;
// - where `type` is missing, it is that of the keywords that are there;
// - strings with a pattern, a format or fixed values, and names of properties, have their shortest
//   spelling; integers are written without a fraction or an exponent.
// oneOf is read as anyOf: a value may be valid under several of its schemas. An object without
// properties may have a name twice. What cannot be obeyed is refused by name with its path.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "text/grammar/byte_grammar.h"

namespace snug::text {

// A rule of a larger grammar. Throws std::invalid_argument that names what is wrong or not built,
// and where.
RuleId add_schema(GrammarBuilder& builder, const nlohmann::ordered_json& schema);

// The same as a grammar of its own.
ByteGrammar schema_grammar(const nlohmann::ordered_json& schema);

// Of a text, which `name` names in messages; UserError for what is no JSON.
ByteGrammar schema_text_grammar(std::string_view schema, const std::string& name);

}  // namespace snug::text
