// Records as tokens: what a record of each form becomes before it is cut to max_length.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/chat/answer_ends.h"
#include "text/chat/chat_template.h"
#include "text/record/document.h"
#include "text/record/preference_pair.h"
#include "text/record/record_form.h"
#include "text/row/dataset_options.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

// Which fields are filled depends on the form and on the options.
struct TokenizedRecord {
  RecordForm form = RecordForm::text;
  Document document;                      // empty: a text without a token
  Document rejected{};                    // preference: the other one of a pair
  std::vector<int32_t> encoder_ids{};     // where there is an encoder; the document is a decoder's
  std::vector<LabelledAnswer> answers{};  // instead of these, where answers have labels
  int64_t tokens = 0;                     // of the whole document, of which it may be the beginning
  int64_t first_target = 0;               // of the whole
  int64_t dropped = 0;                    // of a pair's prompt: tokens that are left out
  const char* chat_field = nullptr;       // as in Record
  std::vector<Unwritten> unwritten{};     // of conversations: what their template leaves out
  AnswerEnds ends{};                      // what ends that which is learned
  std::vector<std::string> unused{};
  std::vector<std::string> ignored{};  // as in Record
};

// Other records of the file are texts to be read as conversations, too, for this field.
struct TextsAreChats {
  const char* field;
};

// All records of one file, which are of one form. Everything that is given must outlive it.
// `tokenizer`: null for tokens; `chat`: null unless the records hold conversations.
class RecordTokenizer {
 public:
  struct Means {
    const Tokenizer* tokenizer = nullptr;
    const ChatTemplate* chat = nullptr;
  };
  RecordTokenizer(const std::string& path, const DatasetOptions& options, RecordForm form,
                  const Means& means)
      : path_(path), options_(options), form_(form), means_(means) {}

  // The tokens of a record; only its form where that is another one. Throws RecordError for an
  // answer that makes no token, an id outside of the vocabulary, and conversations next to texts.
  // Throws TextsAreChats where a field makes a conversation of a record of texts, but no chat
  // template is there for it. Any thread.
  TokenizedRecord of(Record record) const;

 private:
  void take(Record& record, TokenizedRecord& result) const;
  [[noreturn]] void fail(const Record& record, const std::string& what,
                         Fault fault = Fault::mapping) const;
  void take_tokens(Record& record, TokenizedRecord& result) const;
  void take_token_pair(Record& record, TokenizedRecord& result) const;
  void take_parts(const Record& record, TokenizedRecord& result) const;
  void check_all_learned(const Record& record) const;
  void check_compared(const Record& record, const Conversation& conversation,
                      bool learns_prompt) const;
  void check_vocabulary(const Record& record, const char* key, int32_t largest) const;
  void take_compared(const Record& record, TokenizedRecord& result) const;
  void take_pair(const Record& record, TokenizedRecord& result) const;
  void take_answer(const Record& record, TokenizedRecord& result) const;
  bool keeps_end() const { return options_.truncation == base::Truncation::keep_end; }
  void shorten(const Record& record, TokenizedRecord& result, Document& document) const;
  Document tokenize_chat(const Record& record) const;
  void look_over(const Record& record, TokenizedRecord& result) const;

  const std::string& path_;
  const DatasetOptions& options_;
  RecordForm form_;
  Means means_;
};

}  // namespace snug::text
