// What the data of a run hold as an HTML page: figures, what is probably wrong, the lengths of
// records, and samples with the trained tokens marked.
#pragma once

#include <string>

#include "text/audit/audit_report.h"

namespace snug::report {

std::string audit_page(const text::AuditReport& report);

}  // namespace snug::report
