#include "generate/evaluated_data.h"

#include <fmt/format.h>

#include "base/console.h"
#include "plan/spec/data_keys.h"

namespace snug::generate {

void refuse_weights(const formats::Recipe& recipe, std::string_view counted) {
  for (const formats::DataEntry& entry : recipe.data)
    if (entry.weight > 0 || entry.repeats != 1)
      recipe.fail("data", fmt::format("gives a source a weight or repeats, and {} once; leave them "
                                      "out",
                                      counted));
}

EvaluatedData::EvaluatedData(const formats::Recipe& recipe, const formats::DataEntry& entry,
                             bool has_encoder)
    : mapping_(plan::record_mapping(recipe, entry)),
      ignored_(plan::ignored_fields(recipe, entry)),
      rules_{.form = plan::record_form(plan::data_format(recipe, entry)),
             .has_encoder = has_encoder,
             .ignored = ignored_,
             .mapping = mapping_.is_empty() ? nullptr : &mapping_},
      files_(formats::data_files(recipe, "data", entry, formats::DataUse::evaluation)) {
  for (const std::string& note : files_.notes) base::say("{}: {}", files_.description, note);
}

}  // namespace snug::generate
