// 60 recipes that axolotl, LLaMA-Factory, TRL, torchtune and unsloth publish, with the names of
// models, data and runs replaced: each of their keys is obeyed, noted or refused, as
// tests/goldens/public_recipes/outcomes.txt and docs/public_recipes.md have it, and none is
// silently ignored. A failure prints the lines that belong there.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "../base/temporary_folder.h"
#include "formats/foreign/foreign_keys.h"
#include "formats/recipe/recipe.h"
#include "formats/recipe/recipe_keys.h"
#include "formats/recipe/recipe_text.h"

namespace snug::formats {
namespace {

constexpr const char* kGoldens = "tests/goldens/public_recipes/";

enum class Outcome { obeyed, noted, refused, ignored };
constexpr std::array kOutcomeWords{"obeyed", "noted", "refused", "ignored"};

// The name of the tool and of the file, and the recipe's text.
struct PublicRecipe {
  std::string title;
  std::string yaml;

  std::string tool() const { return title.substr(0, title.find(' ')); }
};

std::vector<PublicRecipe> public_recipes() {
  std::vector<PublicRecipe> all;
  std::istringstream text(base::read_text_file(std::string(kGoldens) + "recipes.yaml"));
  constexpr std::string_view kBegin = "--- # ";
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with(kBegin))
      all.push_back({line.substr(kBegin.size()), ""});
    else if (!all.empty())
      all.back().yaml += line + "\n";
  }
  return all;
}

struct KeyOutcome {
  std::string key;  // with the keys that it is in
  Outcome outcome = Outcome::ignored;
  std::string obeyed_as{};  // the recipe's key

  std::string root() const { return key.substr(0, key.find('.')); }
};

class Reading {
 public:
  explicit Reading(const PublicRecipe& recipe)
      : path_(write(recipe)), read_(read_recipe(path_, {})) {
    try {
      read_.mistakes.throw_if_any();
    } catch (const base::UserErrors& errors) {
      mistakes_ = errors.mistakes();
    } catch (const base::UserError& error) {
      mistakes_ = {error.what()};
    }
  }

  std::vector<KeyOutcome> outcomes() const {
    base::Mistakes unread;
    std::vector<KeyOutcome> all;
    for (const Written& written : written_in_yaml(base::read_text_file(path_), path_, unread))
      all.push_back(outcome_of(written));
    return all;
  }

 private:
  std::string write(const PublicRecipe& recipe) const {
    folder_.write("data/dataset_info.json", R"({"a": {"file_name": "a.json"}})");
    folder_.write("examples/deepspeed/ds_z3_config.json", R"({"zero_optimization": {"stage": 3}})");
    return folder_.write("r.yaml", recipe.yaml).string();
  }

  KeyOutcome outcome_of(const Written& written) const {
    const std::string line = fmt::format("{}:{}:", path_, written.where.line);
    const std::string group = fmt::format("'{}': ", written.name.substr(0, written.name.find('.')));
    const auto begins = [&](const std::string& text) { return text.starts_with(line); };
    const bool is_refused = std::ranges::any_of(mistakes_, [&](const std::string& mistake) {
      return begins(mistake) ||
             (written.name.find('.') != std::string::npos && mistake.find(group) != mistake.npos);
    });
    if (is_refused) return {written.name, Outcome::refused};
    const std::string noted = fmt::format("'{}' (line {})", written.name, written.where.line);
    const bool is_noted = std::ranges::any_of(read_.recipe.notes, [&](const std::string& note) {
      return begins(note) || note.find(noted) != note.npos;
    });
    if (is_noted) return {written.name, Outcome::noted};
    for (const auto& [key, where] : read_.recipe.given)
      if (where.line == written.where.line && find_recipe_key(key)->name == key)
        return {written.name, Outcome::obeyed, key};
    // It agrees with another name of the key, or is null, as where nobody gives it.
    const std::string key = key_of(written.name);
    if (!key.empty() && (read_.recipe.is_given(key) || written.items.empty()))
      return {written.name, Outcome::obeyed, key};
    if (changes_recipe(written)) return {written.name, Outcome::obeyed, "data"};
    return {written.name};
  }

  // The recipe's key that this is another name of; empty where it is of none.
  static std::string key_of(std::string_view name) {
    const RecipeKey* key = find_recipe_key(name);
    const ToolKey* row = key == nullptr ? find_tool_key(foreign_keys(), name) : nullptr;
    if (row != nullptr) key = find_recipe_key(row->key);
    return key == nullptr ? "" : std::string(key->name);
  }

  // Whether the recipe would be another one without this line, as with words that change entries
  // of data.
  bool changes_recipe(const Written& written) const {
    std::istringstream all(base::read_text_file(path_));
    std::string others;
    int at = 0;
    for (std::string line; std::getline(all, line);)
      if (++at != written.where.line) others += line + "\n";
    const std::string path = folder_.write("others.yaml", others).string();
    return to_yaml(read_recipe(path, {}).recipe) != to_yaml(read_.recipe);
  }

  const testing::TemporaryFolder folder_;
  std::string path_;
  RecipeReading read_;
  std::vector<std::string> mistakes_;
};

std::string outcome_text(const PublicRecipe& recipe, const std::vector<KeyOutcome>& outcomes) {
  std::string text = recipe.title + "\n";
  for (size_t i = 0; i < kOutcomeWords.size(); ++i) {
    std::vector<std::string> keys;
    for (const KeyOutcome& each : outcomes)
      if (each.outcome == static_cast<Outcome>(i)) keys.push_back(each.key);
    if (!keys.empty()) text += fmt::format("  {}: {}\n", kOutcomeWords[i], fmt::join(keys, " "));
  }
  return text;
}

// What all recipes together say of a key.
struct KeyRow {
  std::set<std::string> tools;
  std::set<std::string> recipes;
  std::map<Outcome, std::set<std::string>> of;  // recipes
  std::set<std::string> obeyed_as;

  std::string text(const std::string& key) const {
    std::vector<std::string> parts;
    for (const auto& [outcome, titles] : of) {
      std::string part = kOutcomeWords[static_cast<size_t>(outcome)];
      if (outcome == Outcome::obeyed) part += fmt::format(" (`{}`)", fmt::join(obeyed_as, "`, `"));
      if (of.size() > 1) part += fmt::format(" {}", titles.size());
      parts.push_back(std::move(part));
    }
    return fmt::format("| `{}` | {} | {} | {} |\n", key, fmt::join(tools, ", "), recipes.size(),
                       fmt::join(parts, "; "));
  }
};

TEST(PublicRecipes, EachKeyHasTheOutcomeThatIsWritten) {
  const std::vector<PublicRecipe> recipes = public_recipes();
  ASSERT_EQ(recipes.size(), 60U);
  const std::string written = base::read_text_file(std::string(kGoldens) + "outcomes.txt");
  const std::string page = base::read_text_file("docs/public_recipes.md");
  std::map<std::string, KeyRow> rows;
  for (const PublicRecipe& recipe : recipes) {
    const std::vector<KeyOutcome> outcomes = Reading(recipe).outcomes();
    const std::string text = outcome_text(recipe, outcomes);
    EXPECT_NE(written.find(text), std::string::npos) << "in outcomes.txt:\n" << text;
    for (const KeyOutcome& each : outcomes) {
      EXPECT_NE(each.outcome, Outcome::ignored) << recipe.title << ": " << each.key;
      KeyRow& row = rows[each.root()];
      row.tools.insert(recipe.tool());
      row.recipes.insert(recipe.title);
      row.of[each.outcome].insert(recipe.title);
      if (!each.obeyed_as.empty()) row.obeyed_as.insert(each.obeyed_as);
    }
  }
  std::string missing;
  for (const auto& [key, row] : rows)
    if (page.find(row.text(key)) == std::string::npos) missing += row.text(key);
  EXPECT_EQ(missing, "") << "rows of docs/public_recipes.md:\n" << missing;
}

}  // namespace
}  // namespace snug::formats
