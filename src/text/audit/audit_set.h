// Looks over one set of documents, that of training or one for evaluation. What it takes of time
// and memory is bounded by AuditDepth and content_scan.h, so that it can be done before every run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/audit/audit_report.h"
#include "text/row/document_store.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

// How closely to look.
struct AuditDepth {
  int64_t looked_at = 64;                       // documents whose text is read for signs
  int64_t tokens_looked_at = int64_t{1} << 16;  // after which no other one is
  int64_t by_chance = 0;  // samples to show, next to the first, the longest and the shortest
  bool shows_samples = false;
  bool finds_near = false;
};
inline constexpr AuditDepth kQuickAudit{};
inline constexpr AuditDepth kWholeAudit{.looked_at = 2000,
                                        .tokens_looked_at = int64_t{1} << 22,
                                        .by_chance = 3,
                                        .shows_samples = true,
                                        .finds_near = true};

struct SetToAudit {
  const DocumentStore& documents;
  const Tokenizer* tokenizer = nullptr;  // null: none was needed
  uint64_t seed = 0;
  bool trains_on_prompt = false;
  AuditDepth depth = kQuickAudit;
};

// Fills what is known of the documents into a set that has its name, `loaded`, group, rows, the
// ends that the model's folder names, and the names and ranges of its sources. `training`: of an
// evaluation set, the one to compare with.
void audit_set(const SetToAudit& given, AuditedSet& set, const AuditedSet* training = nullptr);

}  // namespace snug::text
