// Reads a line of a prompts file as a request to the engine. A line is an object with one of
//   prompt       a text in the form that prompt_format names, a list of messages, or a list of ids
//   messages     (or conversations) for the chat template. Where the last one is the assistant's,
//                that answer is left out and asked for anew
//   instruction  (and input) in the Alpaca form, unless prompt_format is given
//   question     (or query) for the chat template, unless prompt_format is given
//   text, input  as prompt
//   ids          (or input_ids, prompt_token_ids) token ids
// or a text alone, or a list alone, which are a prompt; or a request of OpenAI's batch form, in
// whose body these are. What a line says of its own request: line_settings.h. One thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/answer_forms.h"
#include "engine/request.h"
#include "generate/prompts_file/line_settings.h"
#include "models/config/config.h"
#include "text/chat/chat_template.h"
#include "text/chat/unwritten_counts.h"
#include "text/record/record_mapping.h"
#include "text/record/record_reader.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::generate {

struct AskedLine {
  engine::Request request{};
  bool wants_ids = false;
  // Fields that say nothing to the model. Of a line that cannot be read, those that identify it.
  nlohmann::json passed_on = nlohmann::json::object();
};

class LineReader {
 public:
  // All must outlive the object. `tokenizer`: null where the model's folder has none.
  LineReader(const formats::Recipe& recipe, const models::ModelSource& model,
             const text::Tokenizer* tokenizer);

  // Fills `line`. Throws RecordError for a line that cannot be asked, and UserError where none
  // can: a conversation without a chat template, a text without a tokenizer.
  void read(const text::RawRecord& raw, const std::string& path, AskedLine& line);

  // What the user must know of all lines that were read; empty: nothing.
  std::vector<std::string> notes(const std::string& path) const;

 private:
  struct Prompt;  // what a line asks

  void read_object(const text::RecordFields& fields, int64_t index, AskedLine& line);
  Prompt prompt_of(const text::RecordFields& fields);
  Prompt of_ids(const text::RecordFields& fields, const char* key) const;
  Prompt of_messages(const text::RecordFields& fields, const char* key) const;
  Prompt of_text(const text::RecordFields& fields) const;
  engine::Ids ids_of(Prompt& prompt, const text::RecordFields& fields);
  engine::Ids chat_ids(Prompt& prompt, const text::RecordFields& fields);
  engine::AnswerEnd end_of(const LineSettings& settings, bool is_chat);
  const text::ChatTemplate& chat();

  const formats::Recipe& recipe_;
  const models::ModelSource& model_;
  const text::Tokenizer* tokenizer_;
  text::RecordMapping mapping_;
  std::vector<std::string> adapters_;           // the names of those that lines choose from
  std::optional<engine::AnswerForms> forms_{};  // where there is a tokenizer
  std::optional<text::ChatTemplate> chat_{};    // opened when a conversation first needs it
  std::optional<engine::Ids> text_ends_{};      // the ids that end an answer
  std::optional<engine::Ids> chat_ends_{};      // and one of a chat
  text::UnwrittenCounts unwritten_{};
  int64_t dropped_answers_ = 0;
};

}  // namespace snug::generate
