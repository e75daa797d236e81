// The data of a run looked over before anything is trained (text/audit/audit_report.h).
#pragma once

#include <string>

#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "text/audit/audit_set.h"
#include "train/data.h"

namespace snug::train {

// A run whose data were read.
struct RunToAudit {
  const formats::Recipe& asked;    // with which the data were read
  const formats::Recipe& settled;  // with which rows were made; the same while max_length is open
  const models::ModelSource& model;
  const RunData& data;  // with its tokenizer, where there is one
};

text::AuditReport audit(const RunToAudit& run, const text::AuditDepth& depth);

// What the log of a run says of the data before step 1: a line for each set and one for each
// warning. The rest is for `snug audit`.
std::string short_text(const text::AuditReport& report);

}  // namespace snug::train
