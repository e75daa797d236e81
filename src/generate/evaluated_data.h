// How an entry of recipe.data is read for an evaluation: its files and the rules of their records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/data/data_files.h"
#include "formats/recipe/recipe.h"
#include "text/record/record_form.h"
#include "text/record/record_mapping.h"

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

}  // namespace snug::generate
