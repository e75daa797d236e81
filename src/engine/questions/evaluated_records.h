// What became of one file's records that are read for an evaluation, and what is told of those that
// are left out.
#pragma once

#include <cstdint>
#include <string>

#include "formats/recipe/recipe.h"
#include "text/record/bad_records.h"
#include "text/record/record_form.h"
#include "text/record/unused_fields.h"

namespace snug::engine {

struct EvaluatedRecords {
  int64_t count = 0;
  text::BadRecords bad{};
  text::UnusedFields unused{};
  text::IgnoredFields ignored{};

  // Throws UserError for a file without records, and where more are bad than the recipe allows.
  // `has_any`: some were used; otherwise `why` nothing goes on.
  void check(const formats::Recipe& recipe, const std::string& path, bool has_any,
             const std::string& why) const;
  // Says what was left out.
  void tell(const std::string& path, const text::RecordRules& rules) const;
};

}  // namespace snug::engine
