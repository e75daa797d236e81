#include "plan/spec/data_keys.h"

#include "base/error.h"
#include "base/words.h"

namespace snug::plan {

using formats::DataEntry;
using formats::Recipe;

std::optional<text::RecordForm> record_form(formats::DataFormat format) {
  return base::from_word<text::RecordForm>(base::word_of(format));
}

text::SkipLimits skip_limits(const Recipe& recipe) {
  return {.refuses_any = recipe.on_bad_record == formats::OnBadRecord::error,
          .mapping_share = recipe.max_skipped};
}

formats::DataFormat data_format(const Recipe& recipe, const DataEntry& entry) {
  return entry.data_format == formats::DataFormat::automatic ? recipe.data_format
                                                             : entry.data_format;
}

std::vector<std::string> ignored_fields(const Recipe& recipe, const DataEntry& entry) {
  return entry.ignore_fields.empty() ? recipe.ignore_fields : entry.ignore_fields;
}

text::RecordMapping record_mapping(const Recipe& recipe, const DataEntry& entry) {
  const bool own_fields = !entry.fields.empty();
  const bool own_roles = !entry.roles.empty();
  try {
    return {own_fields ? entry.fields : recipe.fields, own_roles ? entry.roles : recipe.roles};
  } catch (const base::UserError& error) {
    const std::string what = error.what();
    const bool is_of_roles = what.starts_with("'roles'");
    const bool is_own = is_of_roles ? own_roles : own_fields;
    const auto given = recipe.given.find(is_own ? "data" : is_of_roles ? "roles" : "fields");
    throw base::UserError(what, given == recipe.given.end() ? base::Location{} : given->second);
  }
}

text::LearningRules learning_rules(const Recipe& recipe) {
  text::LearningRules rules;
  try {
    rules = text::learning_rules(recipe.roles_to_train, recipe.train_on_turns);
  } catch (const base::UserError& error) {
    recipe.fail("roles_to_train", error.what());
  }
  if (recipe.train_on_prompt && !rules.are_usual())
    recipe.fail("train_on_prompt",
                "is true, which learns all of a record; leave it out, or leave out roles_to_train "
                "and train_on_turns");
  return rules;
}

}  // namespace snug::plan
