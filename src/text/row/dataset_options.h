// Options of how the records of a file become documents.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/truncation.h"
#include "text/record/bad_records.h"
#include "text/record/learning_rules.h"
#include "text/record/record_form.h"

namespace snug::text {

struct DatasetOptions {
  int32_t max_length = 0;  // in tokens, at least 2
  // The tokens of an encoder's input, if documents consist of a prompt for the encoder and an
  // answer for the decoder; max_length is then the decoder's. 0: there is no encoder.
  int32_t encoder_length = 0;
  // With an encoder: what the decoder reads in place of a token without loss.
  int32_t padding_id = 0;
  // With an encoder: the decoder reads the prompt before the answer, too.
  bool repeats_prompt = false;
  bool train_on_prompt = false;
  LearningRules learning{};  // of conversations, unless all of them is learned
  // For the form preference: the prompt of the chosen answer is learned, too.
  bool train_on_chosen_prompt = false;
  std::string chat_template{};  // as for ChatTemplate; empty: the model's own
  // The form of the records; nothing: determined by their fields. With unpaired, records may also
  // be pairs, which count as two examples each.
  std::optional<RecordForm> form{};
  std::vector<std::string> ignored_fields{};            // RecordRules::ignored
  RecordMapping mapping{};                              // of fields and roles with other names
  SkipLimits skips{};                                   // of records that cannot be learned from
  base::Truncation truncation = base::Truncation::end;  // of what is longer than max_length
  int64_t mismatch_batch = 0;                           // unpaired: as MismatchedAnswers takes it
  // Of the model: what max_length may be at most.
  int64_t positions = std::numeric_limits<int64_t>::max();
  int64_t vocabulary = 0;  // upper limit (exclusive) of ids in records of the form tokens
  int threads = 1;         // for tokenizing; the result does not depend on their number
};

}  // namespace snug::text
