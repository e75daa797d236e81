// What a recipe's keys say of how the records of its data are read; an entry of the data takes
// precedence over the recipe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "text/record/bad_records.h"
#include "text/record/learning_rules.h"
#include "text/record/record_form.h"
#include "text/record/record_mapping.h"

namespace snug::plan {

// The record form that data_format names; nothing for auto.
std::optional<text::RecordForm> record_form(formats::DataFormat format);

// How many records on_bad_record and max_skipped leave out.
text::SkipLimits skip_limits(const formats::Recipe& recipe);

formats::DataFormat data_format(const formats::Recipe& recipe, const formats::DataEntry& entry);

std::vector<std::string> ignored_fields(const formats::Recipe& recipe,
                                        const formats::DataEntry& entry);

// What fields and roles say. Throws UserError for what Snug does not read.
text::RecordMapping record_mapping(const formats::Recipe& recipe, const formats::DataEntry& entry);

// What roles_to_train and train_on_turns say. Throws UserError for unknown roles, and next to
// train_on_prompt.
text::LearningRules learning_rules(const formats::Recipe& recipe);

}  // namespace snug::plan
