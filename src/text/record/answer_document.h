// The document of an instruction or a text: a prompt, then what is learned, then EOS.
#pragma once

#include "text/record/document.h"
#include "text/record/record_form.h"

namespace snug::text {

// The document of a record with prompt and answer, or of a text, which has no prompt. It is empty
// where what is to be learned has no token. The tokenizer has an EOS token. Pure; any thread.
Document answer_document(const Record& record, const Tokenizer& tokenizer);

}  // namespace snug::text
