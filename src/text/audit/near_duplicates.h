// Documents that are nearly the same: those that share kNearShare of their runs of three tokens
// (their Jaccard similarity). An estimate from below: candidates are found by MinHash (Broder, "On
// the resemblance and containment of documents", 1997), which misses few, and each is then compared
// for certain. Runs that many documents have, those of a template or a system message, do not
// count, and equal documents count once.
//
// Stages: read kBoilerplateSample documents, and note the runs that more than a tenth of them have;
// make kBands keys for each document; for each band sort the keys, and compare documents with equal
// ones. What it holds is bounded (kNearBytes); of more documents than that allows a part is looked
// at, evenly spread. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "text/audit/document_reader.h"

namespace snug::text {

inline constexpr double kNearShare = 0.8;

struct NearDuplicates {
  int64_t looked_at = 0;  // documents, equal ones left out
  int64_t documents = 0;  // of the range
  int64_t near = 0;       // of those looked at, that nearly repeat another one
  int64_t one = -1;       // two that are nearly the same, for the user to look at
  int64_t other = -1;
};

// `group`: only the first document of each group is looked at, since a pair shares its prompt.
NearDuplicates find_near_duplicates(const DocumentStore& documents, DocumentRange range,
                                    int32_t group);

// 12 keys of 4 bytes for each of 2^20 documents, their places, and what sorting a band takes.
inline constexpr int64_t kMostLookedAt = int64_t{1} << 20;
inline constexpr int64_t kNearBytes = kMostLookedAt * (12 * 4 + 8 + 4 + 8);

}  // namespace snug::text
