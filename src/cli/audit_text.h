// What `snug audit` prints for people: what the data hold, samples with the trained tokens marked,
// and what is probably wrong. Pure functions.
#pragma once

#include <string>

#include "text/audit/audit_report.h"

namespace snug::cli {

// `colour`: trained tokens are green, as terminals write it; else they stand between two signs that
// no sample has. What comes from the data is escaped as base/shown_text.h says.
std::string audit_text(const text::AuditReport& report, bool colour);

// The same as JSON: the samples with their ids, and which of these are trained.
std::string audit_json(const text::AuditReport& report);

}  // namespace snug::cli
