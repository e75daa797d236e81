// The forms of a data file's records, by their names in recipes. text/record/record_form.h says
// which fields each form has.
#pragma once

#include <cstdint>

#include "base/words.h"

// Expands X(name) for each form.
#define SNUG_RECORD_FORMS(X) \
  X(alpaca)                  \
  X(messages)                \
  X(sharegpt)                \
  X(prompt_completion)       \
  X(preference)              \
  X(unpaired)                \
  X(text)                    \
  X(tokens)

namespace snug::base {

enum class RecordForm : uint8_t {
#define SNUG_FORM(name) name,
  SNUG_RECORD_FORMS(SNUG_FORM)
#undef SNUG_FORM
};

constexpr auto words_of(RecordForm /*type*/) {
  return words<RecordForm>({
#define SNUG_FORM(name) {RecordForm::name, #name},
      SNUG_RECORD_FORMS(SNUG_FORM)
#undef SNUG_FORM
  });
}

}  // namespace snug::base
