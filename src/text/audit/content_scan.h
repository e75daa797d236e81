// One pass over the documents of a store, as they will be learned: what they hold more than once,
// which tokens are learned, how answers begin and end. It reads each document once, and holds at
// most kScanBytes next to the longest document, whatever the store's size. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "text/audit/document_reader.h"
#include "text/audit/frequent_values.h"
#include "text/audit/length_counts.h"

namespace snug::text {

struct ScanOptions {
  std::span<const int32_t> ends{};  // tokens at which generation stops
  std::optional<int32_t> bos{};     // the token that begins a text, where there is one
  int32_t group = 1;                // so many documents in a row belong together, as a pair does
  bool has_prompts = true;          // the documents have answers, and are not learned whole
};

// The fingerprints of what the units of a store hold, sorted. A unit is a document, or the
// documents of a group. Where there are more than kMostFingerprints, those of a part of the
// contents are kept, chosen by their fingerprint, so that all copies of one content are among them.
class Fingerprints {
 public:
  // For so many units.
  explicit Fingerprints(int64_t units = 0);

  void add(uint64_t fingerprint);
  void finish();  // sorts them; before any question

  // Units that hold the same as one before them.
  int64_t repeated() const;
  // The most units that hold the same.
  int64_t most_equal() const;
  bool has(uint64_t fingerprint) const;
  // Whether a fingerprint belongs to the part that is kept.
  bool is_kept(uint64_t fingerprint) const { return (fingerprint & mask_) == 0; }
  bool is_part() const { return mask_ != 0; }
  // A number of what was found in the part, for the whole.
  int64_t of_all(int64_t in_part) const { return in_part * static_cast<int64_t>(mask_ + 1); }

 private:
  std::vector<uint64_t> values_;
  uint64_t mask_ = 0;  // of bits that are 0 in all that are kept
};
inline constexpr int64_t kMostFingerprints = int64_t{2} << 20;

struct ContentScan {
  int64_t documents = 0;
  int64_t units = 0;
  int64_t tokens = 0;
  int64_t trained = 0;              // tokens that are targets
  int64_t untrained_documents = 0;  // without a target
  int64_t with_end = 0;             // documents of which a target is an end
  int64_t with_two_bos = 0;         // documents that begin with two of them
  LengthCounts answers{};           // targets of each document that has a prompt
  FrequentValues whole_answers{};   // what the targets of a document are
  FrequentValues beginnings{};      // the first kBeginningTokens targets of those that have more
  Fingerprints contents{};          // ids, and which of them are targets
  Fingerprints prompts{};           // what comes before the first target, where it is enough
};

// So many tokens are the beginning of an answer.
inline constexpr int32_t kBeginningTokens = 4;
// A prompt of fewer tokens says nothing.
inline constexpr int32_t kLeastPrompt = 4;

// The most that a scan holds next to the longest document: two lists of fingerprints. That is no
// more than what reading the documents' file held before (dataset.h, reading_bytes), and it is
// freed with the scan.
inline constexpr int64_t kScanBytes = 2 * kMostFingerprints * 8;

ContentScan scan_contents(const DocumentStore& documents, DocumentRange range,
                          const ScanOptions& options);

// How many units of other documents are in a store that was scanned.
struct Overlap {
  int64_t units = 0;
  int64_t equal = 0;          // that hold the same, the answer too
  int64_t equal_prompts = 0;  // that have an equal prompt, whatever the answer
};
Overlap overlap_with(const ContentScan& scanned, const DocumentStore& others, DocumentRange range,
                     const ScanOptions& options);

}  // namespace snug::text
