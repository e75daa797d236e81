// Configuration files of other tools, translated key by key into keys of a recipe by a table.
#pragma once

#include "formats/recipe/recipe_keys.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

// A value that a file may have, and what the recipe's key becomes; empty: it is left alone.
struct ToolWord {
  std::string_view from;
  std::string_view to = "";
  // Why the value changes nothing, where "this is so here in any case" does not say it.
  std::string_view note = "";
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
  // A key without a value says something of its own, which is refused as other values are.
  bool refuses_none = false;
};

// The value of a row that no value suits.
inline const std::vector<ToolWord> kNever = {{"null"}};

struct ToolConfig {
  std::vector<Written> settings;   // keys of a recipe, with the places where the file says them
  std::vector<std::string> notes;  // what the file says that has no meaning here, and why
  base::Mistakes mistakes;
};

// Every value below `document` that is neither null nor empty, under its path; a list holds one an
// element: optimizer.params.betas[0]. `text` is what the file holds, in JSON or YAML. Throws
// UserError for more values, or deeper ones, than such a file has.
std::vector<Written> settings_in(const nlohmann::json& document, std::string_view text,
                                 const std::string& file);

// nullptr where no row fits.
const ToolKey* find_tool_key(const std::vector<ToolKey>& keys, std::string_view path);

// Settings, each as it was written. Mistakes name the file and the path of the key: unknown keys,
// with what was meant where that is clear, and values that ask for what Snug does not do.
ToolConfig translate(const std::vector<Written>& all, const std::vector<ToolKey>& keys,
                     const std::string& file);
// The same of a whole file, whose settings agree.
ToolConfig translate_file(const std::vector<Written>& all, const std::vector<ToolKey>& keys,
                          const std::string& file);

// Two keys of a file may say the same thing; it is a mistake where they contradict each other, or
// where a value is none of the recipe's key.
void add_setting(ToolConfig& config, const Written& written);

// nullptr when the file does not say it, or leaves it to the recipe with "auto".
const std::string* find_setting(const std::vector<Written>& settings, std::string_view path);

// The file's value as a whole number of 1 or more.
int64_t count_in(const std::vector<Written>& settings, std::string_view path);

// Of the setting that the file has under this path.
[[noreturn]] void fail_at(const std::vector<Written>& settings, std::string_view path,
                          const std::string& problem);

// The place of a path in a file whose lines are not known.
base::Location place_in(const std::string& file, std::string_view path);

}  // namespace snug::formats
