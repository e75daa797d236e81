// Records of which only the prompt counts: a model answers them itself. Pure; any thread.
#pragma once

#include <string>

#include "text/record/record_form.h"

namespace snug::text {

// A record with its prompt, and with its answer where it holds one that is read (parse_record).
// Other records need a prompt alone: the field prompt, question, query or instruction, a text or
// messages; or messages or conversations, whose last message is the assistant's where they hold an
// answer. Any other field may stand next to it. Throws RecordError where a record asks nothing.
Record parse_asked_record(const RawRecord& raw, const std::string& path, const RecordRules& rules);

}  // namespace snug::text
