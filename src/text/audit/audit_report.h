// What is known of the data of a run before anything is trained: what will be learned, and what is
// probably wrong with it, each with its remedy. One value, which the log of a run, `snug audit`,
// its JSON and its page show. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/audit/content_scan.h"
#include "text/audit/document_samples.h"
#include "text/audit/near_duplicates.h"
#include "text/audit/text_signs.h"
#include "text/record/dataset_audit.h"

namespace snug::text {

struct Finding {
  std::string_view key;     // its name in JSON: "end_never_trained"
  bool is_warning = false;  // else it is worth a look, and may be as it should
  std::string what;
  std::string remedy;
};

// The rows that an epoch makes of the documents.
struct AuditedRows {
  int64_t rows = 0;
  base::PerStream<int64_t> tokens = 0;  // of a row
  int64_t filled = 0;                   // tokens of documents in all of them
  bool is_packed = true;
};

// The documents of a set that came from one source, where there are several.
struct AuditedSource {
  std::string name;
  DocumentRange range{};
  int64_t taken = 0;  // of its documents in an epoch, each as often as it comes
  int64_t tokens = 0;
  int64_t trained = 0;
};

struct AuditedSet {
  std::string name;  // training, or that of an evaluation set
  std::string path;
  bool is_training = true;
  DatasetAudit loaded{};
  int32_t group = 1;
  std::vector<int32_t> ends{};  // tokens at which generation stops
  AuditedRows rows{};
  ContentScan scan{};
  std::optional<NearDuplicates> near{};
  SignCounts signs{};
  std::optional<Overlap> overlap{};  // of an evaluation set with the training data
  std::vector<DocumentSample> samples{};
  std::vector<AuditedSource> sources{};
  std::vector<Finding> findings{};

  // The share of the rows' tokens that are tokens of documents.
  double fill() const;
  double trained_share() const;
  double repeated_share() const;  // of the units, those that repeat another one
};

struct AuditReport {
  std::string model;
  int64_t max_length = 0;
  int64_t positions = 0;        // that the model has; 0: it is not known
  bool chooses_length = false;  // max_length=auto
  bool trains_on_prompt = false;
  std::vector<AuditedSet> sets;  // the training data first

  int64_t warnings() const;
};

// "12 %", with three digits that count.
std::string percent(double share);
std::string percent(int64_t part, int64_t whole);
// "412 rows of 256 tokens, 97.1 % full"; empty where rows are not made yet (max_length=auto).
std::string rows_text(const AuditedSet& set);
// "12 of 2098 records (0.57 %) repeat another one".
std::string repeated_text(const AuditedSet& set);
// "3 of 2090 records share 80 % of ... with another one (an estimate ...)"; empty: not looked for.
std::string near_text(const AuditedSet& set);
// Of what a pair of documents is: "chosen"; empty where documents stand alone.
std::string member_name(const AuditedSet& set, const DocumentSample& sample);

// The lengths for which max_length is told how many records it would hold.
inline constexpr double kHeldShares[] = {0.9, 0.95, 0.99, 1};

}  // namespace snug::text
