// For a record of no form that Snug knows: which of its fields may stand for Snug's, ready to paste
// into a recipe. A guess from the names of fields, in several languages and spellings, and from
// what they hold: a list of turns with a speaker and a text, two answers of which one is better, a
// prompt and an answer, the one text that there is. Where names say nothing, the last of two texts
// or more is taken as the answer. It is proposed and never applied: only its user knows what the
// data mean. Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace snug::text {

struct ProposedMapping {
  using Pair = std::pair<std::string, std::string>;
  std::vector<Pair> fields{};  // Snug's name, and the field, path or template that stands for it
  std::vector<Pair> roles{};   // the name in the data, and Snug's

  // "fields={prompt: frage, completion: antwort} roles={kunde: user}", as on a command line that
  // quotes it.
  std::string text() const;
};

// Nothing where no field or list of the record looks like one of Snug's.
std::optional<ProposedMapping> propose_mapping(const nlohmann::ordered_json& record);

// The same for the text of a record; nothing for text that is no JSON object.
std::optional<ProposedMapping> propose_mapping(const std::string& record);

}  // namespace snug::text
