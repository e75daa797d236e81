#include "text/record/record_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "text/chat/jinja/allowance.h"
#include "text/record/answer_document.h"
#include "text/record/document_parts.h"
#include "text/record/kept_end.h"
#include "text/record/message_calls.h"
#include "text/record/record_error.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

// The first token that is to be predicted; none for a document that has none.
int64_t first_target_of(const Document& document) {
  const auto& trained = document.trained;
  for (size_t i = 1; i < trained.size(); ++i)
    if (trained[i] != 0) return static_cast<int64_t>(i);
  return 0;
}

void learn_all(Document& document) { std::ranges::fill(document.trained, uint8_t{1}); }

}  // namespace

void RecordTokenizer::fail(const Record& record, const std::string& what, Fault fault) const {
  throw RecordError(record.number, what, path_, record.line, fault);
}

TokenizedRecord RecordTokenizer::of(Record record) const {
  TokenizedRecord result;
  result.form = record.form;
  result.chat_field = record.chat_field;
  result.unused = std::move(record.unused);
  result.ignored = std::move(record.ignored);
  if (record.form != form_) return result;
  if (record.is_conversation() != (means_.chat != nullptr)) {
    if (record.chat_field != nullptr) throw TextsAreChats{record.chat_field};
    fail(record, "some records hold texts, others messages; one file holds one of them");
  }
  if (means_.chat == nullptr && options_.learning.roles != LearningRules().roles)
    fail(record,
         "roles_to_train says whose messages are learned, and the record holds none: leave it out "
         "to learn the answer, or say train_on_prompt=true to learn all");
  const jinja::Allowance allowance;  // for all that is rendered of the record
  try {
    take(record, result);
  } catch (const RecordError&) {
    throw;
  } catch (const base::UserError& error) {
    fail(record, error.what() + incomplete_calls(record.conversation) +
                     incomplete_calls(record.rejected_conversation));
  }
  return result;
}

void RecordTokenizer::take(Record& record, TokenizedRecord& result) const {
  const bool has_encoder = options_.encoder_length > 0;
  if (has_encoder && record.form == RecordForm::tokens)
    take_token_pair(record, result);
  else if (has_encoder)
    take_parts(record, result);
  else if (record.form == RecordForm::tokens)
    take_tokens(record, result);
  else if (record.form == RecordForm::preference || record.form == RecordForm::unpaired)
    take_compared(record, result);
  else if (record.form != RecordForm::text || !is_blank(record.answer))
    take_answer(record, result);
}

void RecordTokenizer::take_answer(const Record& record, TokenizedRecord& result) const {
  look_over(record, result);
  Document document =
      means_.chat != nullptr ? tokenize_chat(record) : answer_document(record, *means_.tokenizer);
  result.tokens = static_cast<int64_t>(document.ids.size());
  result.first_target = first_target_of(document);
  if (result.first_target == 0) {
    // A text without a token is left out. That an answer has none is a mistake: it was said to.
    if (record.form == RecordForm::text) return;
    fail(record,
         fmt::format("{} makes no token of what is to be learned",
                     means_.chat != nullptr ? "the chat template" : "the tokenizer"),
         Fault::size);
  }
  if (record.form != RecordForm::text && result.tokens > options_.max_length)
    shorten(record, result, document);
  result.ends.add(document, *means_.tokenizer);
  if (options_.train_on_prompt) {
    check_all_learned(record);
    learn_all(document);
    result.first_target = 1;
  }
  result.document = std::move(document);
}

// What is cut at its end is cut later, with what is of no conversation.
void RecordTokenizer::shorten(const Record& record, TokenizedRecord& result,
                              Document& document) const {
  if (!keeps_end()) return;
  if (means_.chat != nullptr)
    document = without_oldest_turns(
        record.conversation, options_.max_length, [&](const Conversation& conversation) {
          return tokenize_parts(*means_.tokenizer, means_.chat->render(conversation),
                                SpecialTokens::none);
        });
  else
    document = without_prompt_begin(std::move(document), options_.max_length,
                                    means_.tokenizer->bos_id().value_or(-1));
  result.first_target = first_target_of(document);
}

void RecordTokenizer::check_all_learned(const Record& record) const {
  const std::vector<Message>& messages = record.conversation.messages;
  for (size_t i = 0; i < messages.size(); ++i)
    if (messages[i].refuses_learning())
      fail(record, fmt::format("message {0} says that it is not to be learned ('{1}'), but "
                               "train_on_prompt=true learns all; leave out one of them "
                               "(ignore_fields={1} reads the records without the field)",
                               i + 1, messages[i].own_say()->field));
}

// Of what is compared the prompt is not learned, unless the objective learns it, and all that
// follows it is.
void RecordTokenizer::check_compared(const Record& record, const Conversation& conversation,
                                     bool learns_prompt) const {
  const std::vector<Message>& messages = conversation.messages;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::optional<OwnSay>& say = messages[i].own_say();
    if (!say) continue;
    const bool is_prompt = i < record.prompt_messages;
    const char* why = nullptr;
    if (is_prompt && say->is_learned && !learns_prompt)
      why = "asks to learn it, but it stands before what is compared, and is not learned";
    else if (is_prompt && !say->is_learned && learns_prompt)
      why = "says that it is not to be learned, but this objective learns the prompt as well";
    else if (!is_prompt && !say->is_learned)
      why = "says that it is not to be learned, but all that follows the prompt is compared";
    if (why != nullptr)
      fail(record, fmt::format("message {}: the field '{}' {}; ignore_fields={} reads the records "
                               "without it",
                               i + 1, say->field, why, say->field));
  }
}

void RecordTokenizer::check_vocabulary(const Record& record, const char* key,
                                       int32_t largest) const {
  if (largest < options_.vocabulary) return;
  fail(record, fmt::format("{} holds the id {}, but the model's vocabulary ends at {}; the tokens "
                           "were made for another model",
                           key, largest, options_.vocabulary - 1));
}

// Labels are what is predicted at their own index. Where one has no loss, the decoder reads padding
// after it, as transformers has it; one that repeats the prompt reads the prompt's token there.
void RecordTokenizer::take_token_pair(Record& record, TokenizedRecord& result) const {
  check_vocabulary(record, "input_ids", record.tokens.largest);
  check_vocabulary(record, "labels", std::ranges::max(record.labels));
  const std::vector<int32_t>& prompt = record.tokens.ids;
  for (size_t i = 0; i < record.labels.size(); ++i) {
    const int32_t label = record.labels[i];
    const bool is_target = label != kUntrainedLabel;
    const bool is_prompt = options_.repeats_prompt && i < prompt.size();
    const int32_t in_place = is_prompt ? prompt[i] : options_.padding_id;
    result.document.ids.push_back(is_target ? label : in_place);
    result.document.trained.push_back(is_target ? 1 : 0);
  }
  result.first_target =
      std::ranges::find(result.document.trained, 1) - result.document.trained.begin();
  result.encoder_ids = std::move(record.tokens.ids);
  result.tokens = static_cast<int64_t>(result.encoder_ids.size() + result.document.ids.size());
}

void RecordTokenizer::take_parts(const Record& record, TokenizedRecord& result) const {
  DocumentParts parts = document_parts(record, *means_.tokenizer, options_.repeats_prompt);
  if (parts.encoder_ids.empty())
    fail(record, "the tokenizer makes no token of the prompt, and the encoder must read one",
         Fault::size);
  if (parts.decoder.ids.empty())
    fail(record, "the tokenizer makes no token of what is to be learned", Fault::size);
  result.encoder_ids = std::move(parts.encoder_ids);
  result.document = std::move(parts.decoder);
  result.first_target =
      std::ranges::find(result.document.trained, 1) - result.document.trained.begin();
  result.tokens = static_cast<int64_t>(result.encoder_ids.size() + result.document.ids.size());
}

void RecordTokenizer::take_tokens(Record& record, TokenizedRecord& result) const {
  TokenRecord& tokens = record.tokens;
  check_vocabulary(record, "input_ids", tokens.largest);
  result.tokens = tokens.size;
  result.first_target = tokens.first_target;
  result.document = {std::move(tokens.ids), std::move(tokens.trained)};
}

void RecordTokenizer::take_compared(const Record& record, TokenizedRecord& result) const {
  check_compared(record, record.conversation, options_.train_on_chosen_prompt);
  check_compared(record, record.rejected_conversation, options_.train_on_chosen_prompt);
  look_over(record, result);
  if (options_.form != RecordForm::unpaired) return take_pair(record, result);
  result.answers = keeps_end() ? tokenize_answers_end(record, *means_.tokenizer, means_.chat,
                                                      options_.max_length)
                               : tokenize_answers(record, *means_.tokenizer, means_.chat);
  for (const LabelledAnswer& answer : result.answers) {
    result.tokens = std::max(result.tokens, std::ssize(answer.document.ids) + answer.dropped);
    result.ends.add(answer.document, *means_.tokenizer);
  }
}

void RecordTokenizer::take_pair(const Record& record, TokenizedRecord& result) const {
  PreferencePair pair =
      keeps_end() ? tokenize_pair_end(record, *means_.tokenizer, means_.chat, options_.max_length)
                  : tokenize_pair(record, *means_.tokenizer, means_.chat);
  result.first_target = pair.prompt_tokens;
  result.dropped = pair.dropped;
  result.tokens =
      std::max(std::ssize(pair.chosen.ids), std::ssize(pair.rejected.ids)) + pair.dropped;
  result.ends.add(pair.chosen, *means_.tokenizer);
  result.document = std::move(pair.chosen);
  result.rejected = std::move(pair.rejected);
  if (options_.train_on_chosen_prompt) learn_all(result.document);
}

Document RecordTokenizer::tokenize_chat(const Record& record) const {
  return tokenize_parts(*means_.tokenizer, means_.chat->render(record.conversation),
                        SpecialTokens::none);
}

// What the chat template leaves out of the record's conversations. Throws where the answers are
// something else than what the record says.
void RecordTokenizer::look_over(const Record& record, TokenizedRecord& result) const {
  if (means_.chat == nullptr) return;
  for (const Conversation* conversation : {&record.conversation, &record.rejected_conversation}) {
    if (conversation->messages.empty()) continue;
    const std::vector<Unwritten> unwritten = means_.chat->unwritten(*conversation);
    refuse_unwritten_answers(unwritten);
    result.unwritten.insert(result.unwritten.end(), unwritten.begin(), unwritten.end());
  }
}

}  // namespace snug::text
