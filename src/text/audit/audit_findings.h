// What is probably wrong with the data of a run, each with its remedy. A warning is what hardly
// anybody wants; a note is what some want. Each rule looks at one set, already looked over
// (audit_set.h), and has its threshold next to it. Pure functions.
#pragma once

#include <vector>

#include "text/audit/audit_report.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

// `tokenizer`: to name ends and show answers; null where there is none.
std::vector<Finding> find_faults(const AuditReport& report, const AuditedSet& set,
                                 const DocumentStore& documents, const Tokenizer* tokenizer);

}  // namespace snug::text
