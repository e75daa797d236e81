// Configuration files of other tools, translated key by key into keys of a recipe by a table.
#pragma once

#include "formats/recipe_keys.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

// One value of such a file. A list holds one setting an element: optimizer.params.betas[0].
struct ToolSetting {
  std::string path;
  std::string text;
};

// A value that a file may have, and what the recipe's key becomes; empty: it is left alone.
struct ToolWord {
  std::string_view from;
  std::string_view to = "";
};

// What a key of the file means here. `path` may end in *, for all that starts so; the first row
// that fits counts.
struct ToolKey {
  std::string_view path;
  // The recipe's key under one of its names. Empty: the value has no meaning here, if it is one of
  // `words` or there are none.
  std::string_view key = "";
  // Empty: every value is handed on as it is. Otherwise all others are refused.
  std::vector<ToolWord> words = {};
  // Why a value has no meaning, or what to do about a refused one. A key without meaning and
  // without a reason is not noted: its reader looks at it itself.
  std::string_view reason = "";
};

struct ToolConfig {
  std::vector<Written> settings;   // each with the file and the key's path as its location
  std::vector<std::string> notes;  // what the file says that has no meaning here, and why
};

// Every value below `document` that is neither null nor empty. Throws UserError for more values, or
// deeper ones, than such a file has.
std::vector<ToolSetting> settings_in(const nlohmann::json& document, const std::string& file);

// Throws UserError with the file and the path of the key: unknown keys, naming the nearest, values
// that ask for what Snug does not do, and two values for one key of the recipe.
ToolConfig translate(const std::vector<ToolSetting>& settings, const std::vector<ToolKey>& keys,
                     const std::string& file);

// Two keys of a file may say the same thing; throws UserError where they contradict each other.
void add_setting(ToolConfig& config, Written written);

// nullptr when the file does not say it, or leaves it to the recipe with "auto".
const std::string* find_setting(const std::vector<ToolSetting>& settings, std::string_view path);

// The file's value as a whole number of 1 or more.
int64_t count_in(const std::vector<ToolSetting>& settings, std::string_view path,
                 const std::string& file);

[[noreturn]] void fail_in_file(const std::string& file, std::string_view path,
                               const std::string& problem);

}  // namespace snug::formats
