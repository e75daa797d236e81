// Translates configuration files of other tools key by key into keys of a recipe, by a table.
#pragma once

#include "formats/recipe/recipe_keys.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

// A value that the file may have, and the value that the recipe's key gets; empty: the key is not
// set.
struct ToolWord {
  std::string_view from;
  std::string_view to = "";
  // Why the value changes nothing, if "this is so here in any case" would not explain it.
  std::string_view note = "";
};

// What a key of the file means here. `path` may end in *, which matches any rest; the first
// matching row applies.
struct ToolKey {
  std::string_view path;
  // The recipe's key, under one of its names. Empty: a value has no effect here if it is one of
  // `words`, or if there are no `words`.
  std::string_view key = "";
  // Empty: every value is passed on unchanged. Otherwise values that are not listed are refused.
  std::vector<ToolWord> words = {};
  // Why a value has no effect, or what to do about a refused one. A key without effect and without
  // a reason is not reported, since its reader handles it separately.
  std::string_view reason = "";
  // Whether the key without a value is refused, since that has a meaning of its own.
  bool refuses_none = false;
};

// The `words` of a row that refuses every value.
inline const std::vector<ToolWord> kNever = {{"null"}};

struct ToolConfig {
  std::vector<Written> settings;   // keys of a recipe, with their places in the file
  std::vector<std::string> notes;  // settings of the file that have no effect here, with reasons
  base::Mistakes mistakes;
};

// Every value below `document` that is neither null nor empty, with its path; each element of a
// list is a value of its own: optimizer.params.betas[0]. `text`: the file's content, JSON or YAML.
// Throws UserError for more values, or deeper nesting, than such a file can reasonably have.
std::vector<Written> settings_in(const nlohmann::json& document, std::string_view text,
                                 const std::string& file);

// nullptr if no row matches.
const ToolKey* find_tool_key(const std::vector<ToolKey>& keys, std::string_view path);

// Translates each setting on its own. Mistakes name the file and the path of the key: unknown keys,
// with a suggestion where it is clear what was meant, and values that ask for what Snug does not
// do.
ToolConfig translate(const std::vector<Written>& all, const std::vector<ToolKey>& keys,
                     const std::string& file);
// The same for a whole file, whose settings must not contradict each other.
ToolConfig translate_file(const std::vector<Written>& all, const std::vector<ToolKey>& keys,
                          const std::string& file);

// Adds a setting. Two keys of a file may say the same thing; it is a mistake if they contradict
// each other, or if a value is not valid for the recipe's key.
void add_setting(ToolConfig& config, const Written& written);

// nullptr if the file does not have it, or leaves it to the recipe with "auto".
const std::string* find_setting(const std::vector<Written>& settings, std::string_view path);

// The setting's value as an integer of at least 1.
int64_t count_in(const std::vector<Written>& settings, std::string_view path);

// Fails with the place of the setting under this path.
[[noreturn]] void fail_at(const std::vector<Written>& settings, std::string_view path,
                          const std::string& problem);

// The location of a path in a file whose line numbers are unknown.
base::Location place_in(const std::string& file, std::string_view path);

}  // namespace snug::formats
