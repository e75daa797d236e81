// A pair of answers to one prompt, as two tokenized documents, with the ids and the boundary that
// TRL's DPOTrainer gives them: prompt and answer are tokenized as one text; the answer begins where
// that and the prompt alone differ, of the two answers at the earlier place. A text ends in EOS,
// which is added where it does not; a conversation ends as its chat template ends it, and all that
// follows the prompt for generation is its answer.
#pragma once

#include <cstdint>
#include <vector>

#include "text/chat/chat_template.h"
#include "text/record/document.h"
#include "text/record/record_form.h"

namespace snug::text {

struct PreferencePair {
  Document chosen;
  Document rejected;
  int64_t prompt_tokens = 0;  // that both begin with
  int64_t dropped = 0;        // tokens of the prompt's beginning that are left out (shortened)
};

// The pair of a record of the form preference. `chat`: null unless it holds conversations; the
// tokenizer has an EOS token. Throws UserError where an answer makes no token. Pure; any thread.
PreferencePair tokenize_pair(const Record& record, const Tokenizer& tokenizer,
                             const ChatTemplate* chat);

// An answer by itself, which is desirable or not, after its prompt.
struct LabelledAnswer {
  Document document;
  int64_t prompt_tokens = 0;
  bool is_desirable = false;
  int64_t dropped = 0;  // as in PreferencePair
};

// The answer of a record of the form unpaired, or both of one of the form preference, what was
// chosen first and as the desirable one; with the ids and the boundary that TRL's KTOTrainer gives
// them: as above, each answer by itself. Requires and throws as above, and throws UserError where
// the prompt makes no token. Pure; any thread.
std::vector<LabelledAnswer> tokenize_answers(const Record& record, const Tokenizer& tokenizer,
                                             const ChatTemplate* chat);

// The same with truncation=keep_end: where they have more than `most` tokens, the beginning of the
// prompt is left out, whole turns of a conversation (kept_end.h), and the answers stay.
PreferencePair tokenize_pair_end(const Record& record, const Tokenizer& tokenizer,
                                 const ChatTemplate* chat, int64_t most);
std::vector<LabelledAnswer> tokenize_answers_end(const Record& record, const Tokenizer& tokenizer,
                                                 const ChatTemplate* chat, int64_t most);

}  // namespace snug::text
