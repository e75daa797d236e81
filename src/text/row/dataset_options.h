// How the records of a file become documents.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "text/record/bad_records.h"
#include "text/record/record_form.h"

namespace snug::text {

struct DatasetOptions {
  int32_t max_length = 0;  // tokens, at least 2
  // Tokens that an encoder reads, where documents are a prompt for it and an answer for a decoder,
  // of which max_length is then; 0: there is none.
  int32_t encoder_length = 0;
  int32_t padding_id = 0;       // what such a decoder reads in place of a token without loss
  bool repeats_prompt = false;  // such a decoder reads the prompt, too, before the answer
  bool train_on_prompt = false;
  bool train_on_chosen_prompt = false;  // of the form preference, before what was chosen
  std::string chat_template{};          // as ChatTemplate takes it; empty: the model's own
  // The form of the records; none: it is seen from their fields. Unpaired: these, or pairs, two
  // examples each.
  std::optional<RecordForm> form{};
  std::vector<std::string> ignored_fields{};  // RecordRules::ignored
  RecordMapping mapping{};                    // of fields and roles with other names
  SkipLimits skips{};                         // of records that cannot be learned from
  int64_t mismatch_batch = 0;  // unpaired: as MismatchedAnswers takes it
  // Of the model: what max_length may be at most.
  int64_t positions = std::numeric_limits<int64_t>::max();
  int64_t vocabulary = 0;  // ids of records of the form tokens are below it
  int threads = 1;         // that tokenize; the result does not depend on it
};

}  // namespace snug::text
