// A pair of answers to one prompt, as two tokenized documents, with the ids and the boundary that
// TRL's DPOTrainer gives them: prompt and answer are tokenized as one text; the answer begins where
// that and the prompt alone differ, of the two answers at the earlier place. A text ends in EOS,
// which is added where it does not; a conversation ends as its chat template ends it, and all that
// follows the prompt for generation is its answer.
#pragma once

#include <cstdint>

#include "text/chat_template.h"
#include "text/document.h"
#include "text/record_form.h"

namespace snug::text {

struct PreferencePair {
  Document chosen;
  Document rejected;
  int64_t prompt_tokens = 0;  // that both begin with
};

// Of a record of the form preference. `chat`: null unless it holds conversations; the tokenizer has
// an EOS token. Throws UserError where an answer makes no token. Pure; any thread.
PreferencePair tokenize_pair(const Record& record, const Tokenizer& tokenizer,
                             const ChatTemplate* chat);

}  // namespace snug::text
