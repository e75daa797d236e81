// How an entry of recipe.data is read for an evaluation: its files, the rules of their records, and
// what is told of records that are left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/data/data_files.h"
#include "formats/recipe/recipe.h"
#include "text/record/bad_records.h"
#include "text/record/record_form.h"
#include "text/record/record_mapping.h"
#include "text/record/unused_fields.h"

namespace snug::generate {

// Throws UserError where recipe.data gives a source a weight or repeats. `counted`: what happens
// once instead ("each question is asked").
void refuse_weights(const formats::Recipe& recipe, std::string_view counted);

class EvaluatedData {
 public:
  // Says what was noted of the files. Throws UserError.
  EvaluatedData(const formats::Recipe& recipe, const formats::DataEntry& entry, bool has_encoder);
  EvaluatedData(const EvaluatedData&) = delete;
  EvaluatedData& operator=(const EvaluatedData&) = delete;

  const formats::DataFiles& files() const { return files_; }
  // They are valid as long as this object.
  const text::RecordRules& rules() const { return rules_; }

 private:
  text::RecordMapping mapping_;
  std::vector<std::string> ignored_;
  text::RecordRules rules_;
  formats::DataFiles files_;
};

// What one file's records were.
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

}  // namespace snug::generate
