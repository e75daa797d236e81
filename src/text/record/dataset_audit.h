// What a user looks over before training: what a file holds, and what is left of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/audit/length_counts.h"
#include "text/chat/answer_ends.h"
#include "text/chat/unwritten_counts.h"
#include "text/record/unused_fields.h"

namespace snug::text {

struct DatasetAudit {
  std::string form{};         // of record_form.h
  std::string chat_template;  // the one used; empty for other forms than conversations
  std::optional<std::string> template_source{};  // of ChatTemplate
  UnwrittenCounts unwritten{};                   // what it leaves out of the records
  AnswerEnds ends{};                             // of what is learned, other than of tokens
  int64_t records = 0;
  int64_t empty = 0;           // of them, texts without a token
  int64_t examples = 0;        // answers with a label, of two documents each
  int64_t desirable = 0;       // and those that it says are desirable
  int64_t documents = 0;       // records, or windows of text
  int64_t tokens = 0;          // that were kept
  int64_t trained_tokens = 0;  // that are targets
  int64_t truncated = 0;       // documents that were cut
  int64_t cut_tokens = 0;      // and what they lost
  int64_t longest = 0;         // tokens of the longest record, before it was cut
  LengthCounts lengths{};      // tokens of each record before it was cut, those left out aside
  std::string chat_field{};    // that makes conversations of records of texts
  int64_t bad = 0;             // records that cannot be learned from, which are left out
  std::string bad_told{};      // and what the log says of them (BadRecords::told)
  UnusedFields unused{};
  std::vector<std::string> unmet{};  // fields to be ignored that no record has
  std::string idle_template{};       // the chat template, where texts do without it
  std::string list_told{};           // of the one in an object that the records are

  // A record of so many tokens.
  void count_record(int64_t count) {
    ++records;
    longest = std::max(longest, count);
    lengths.add(count);
    if (count == 0) ++empty;
  }

  // Adds the counts of another source, what ends its answers, and what is told of records that are
  // left out. What is told of fields stays that of the first source; the chat template is that of
  // the first one that has one.
  void add(const DatasetAudit& other);
};

// One paragraph: documents, tokens, what carries loss, what was cut or left out; a line for each
// reason why a record was.
std::string describe(const DatasetAudit& audit, const std::string& path);

}  // namespace snug::text
