#include "text/row/dataset.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/chat/chat_template.h"
#include "text/record/bad_records.h"
#include "text/record/document_parts.h"
#include "text/record/long_record.h"
#include "text/record/record_form.h"
#include "text/record/record_reader.h"
#include "text/record/record_tokens.h"
#include "text/row/document_writer.h"
#include "text/tokenizer/text_windows.h"

namespace snug::text {
namespace {

constexpr size_t kBatchRecords = 512;

struct Item {
  RawRecord raw;
  TokenizedRecord tokens;
  std::exception_ptr error;
};

class Loader {
 public:
  // `chat_field`: the field of a record that shows that the file's texts are conversations; null:
  // none has been found.
  Loader(const std::string& path, const TokenizerOpener& open, const DatasetOptions& options,
         const char* chat_field)
      : path_(path),
        open_(open),
        options_(options),
        rules_{.form = options.form,
               .has_encoder = options.encoder_length > 0,
               .ignored = options.ignored_fields,
               .mapping = options.mapping.is_empty() ? nullptr : &options.mapping,
               .texts_are_chats = chat_field != nullptr},
        chat_field_(chat_field),
        reader_(path, unread_fields(rules_)),
        writer_(path, options, audit_) {}

  Dataset run() {
    if (reader_.format() == RecordReader::Format::plain_text) {
      open_tokenizer();
      reader_.separate_by(std::string(tokenizer_->token_of(eos_).value_or("")));
    }
    for (RawRecord raw; next(raw);) {
      if (!form_ && !try_start(raw)) continue;
      if (raw.is_open || raw.continues) {
        flush();
        add_piece(raw);
      } else if (raw.is_long) {
        flush();
        try_with([&] { add_long(raw); });
      } else {
        hold(raw);
      }
    }
    flush();
    return finish();
  }

 private:
  Dataset finish() {
    if (bad_.count() < records_ || options_.skips.refuses_any)
      bad_.hold_against(options_.skips, path_, records_);
    if (!form_ && bad_.count() == 0)
      throw base::UserError("the data file holds no records", {path_, 0, 0});
    audit_.unmet = ignored_.unmet(unread_fields(rules_));
    audit_.bad = bad_.count();
    audit_.bad_told = bad_.told(path_, records_);
    DocumentStore documents = writer_.finish();
    if (documents.size() == 0 && bad_.count() == records_)
      bad_.fail(path_, records_, "nothing is left to learn from");
    if (documents.size() == 0) throw base::UserError(nothing_left(), {path_, 0, 0});
    Dataset result;
    result.documents = std::move(documents);
    result.audit = std::move(audit_);
    return result;
  }

  std::string nothing_left() const {
    return fmt::format(
        "the data holds nothing to learn: of its {} records none has text that becomes a token and "
        "another one to predict",
        audit_.records);
  }

  // Errors that stop reading are reported after the bad records found before.
  template <typename Action>
  void after_bad_records(const Action& action) {
    try {
      action();
    } catch (const base::UserError& error) {
      flush();
      if (bad_.count() == 0) throw;
      throw BadRecordsError(fmt::format("{}\n{}", bad_.list(), error.what()));
    }
  }

  bool next(RawRecord& raw) {
    bool is_there = false;
    after_bad_records([&] { is_there = reader_.next(raw); });
    if (!is_there) return false;
    records_ = raw.number;
    return true;
  }

  // A record that fails is reported at the end; reading goes on.
  template <typename Action>
  bool try_with(const Action& action) {
    try {
      action();
      return true;
    } catch (const RecordError& error) {
      bad_.add(error);
      return false;
    }
  }

  void open_tokenizer() {
    if (tokenizer_ != nullptr) return;
    after_bad_records([&] { tokenizer_ = &open_(); });
    if (!tokenizer_->eos_id())
      base::throw_user_error(
          "the tokenizer has no EOS token, so a model could not learn where an answer ends; set "
          "eos_token in the model folder's tokenizer_config.json");
    eos_ = *tokenizer_->eos_id();
  }

  void hold(RawRecord& raw) {
    const auto bytes = static_cast<int64_t>(raw.text.size());
    if (batch_.size() == kBatchRecords || batch_bytes_ + bytes > kBatchBytes) flush();
    batch_bytes_ += bytes;
    batch_.emplace_back();
    batch_.back().raw = std::move(raw);
  }

  void flush() {
    tokenize(batch_);
    for (Item& item : batch_) try_with([&] { store(item); });
    batch_.clear();
    batch_bytes_ = 0;
  }

  Record parse(const RawRecord& raw) const {
    if (reader_.format() != RecordReader::Format::plain_text)
      return parse_record(raw, path_, rules_);
    if (options_.form && *options_.form != RecordForm::text)
      throw base::UserError(
          fmt::format("data_format says {}, but this file is plain text; expected "
                      ".json or .jsonl",
                      name_of(*options_.form)),
          {path_, 0, 0});
    Record record;
    record.number = raw.number;
    record.line = raw.line;
    record.answer = raw.text;
    return record;
  }

  // The first readable record determines the form of all records.
  bool try_start(const RawRecord& first) {
    Record record;
    const bool is_read = try_with([&] {
      if (first.is_long)
        record.form = form_of_long_record(first, path_, rules_);
      else
        record = parse(first);
    });
    if (is_read) start(record, first.line);
    return is_read;
  }

  void start(const Record& first, int line) {
    form_ = first.form;
    if (*form_ == RecordForm::preference && !options_.form)
      throw base::UserError(
          "the records hold pairs of answers (chosen and rejected), which objective=dpo, orpo "
          "and kto learn from; set one of them, or give data with one answer to each prompt",
          {path_, line, 0});
    if (rules_.has_encoder) require_parts(*form_, path_, line);
    require_end_to_keep(line);
    audit_.form = name_of(*form_);
    if (*form_ != RecordForm::tokens) open_tokenizer();
    if (*form_ == RecordForm::text)
      windows_.emplace(*tokenizer_, options_.max_length, options_.train_on_prompt,
                       [this](auto ids, auto trained) { writer_.add(ids, trained); });
    writer_.begin(*form_, eos_);
    if (first.is_conversation()) open_template(first.chat_field);
    tokens_.emplace(path_, options_, *form_,
                    RecordTokenizer::Means{tokenizer_, template_ ? &*template_ : nullptr});
  }

  void require_end_to_keep(int line) const {
    if (*form_ == RecordForm::text && options_.truncation != base::Truncation::end)
      throw base::UserError(
          "these records are texts, and texts are learned whole, in windows of max_length tokens: "
          "leave truncation out",
          {path_, line, 0});
    const bool has_turns = *form_ != RecordForm::preference && *form_ != RecordForm::unpaired &&
                           *form_ != RecordForm::tokens && !rules_.has_encoder;
    if (options_.truncation != base::Truncation::keep_end || has_turns) return;
    throw base::UserError(
        fmt::format("truncation=keep_end is built for conversations and prompts with one answer, "
                    "and these records are {}; end cuts them at their end, drop leaves out those "
                    "that are too long",
                    rules_.has_encoder ? "for an encoder-decoder"
                                       : fmt::format("of the form {}", name_of(*form_))),
        {path_, line, 0});
  }

  void open_template(const char* chat_field) {
    if (chat_field == nullptr) chat_field = chat_field_;
    rules_.texts_are_chats = chat_field != nullptr;
    if (chat_field != nullptr) audit_.chat_field = chat_field;
    try {
      template_.emplace(options_.chat_template, *tokenizer_);
    } catch (const base::UserError& error) {
      if (chat_field == nullptr) throw;
      base::throw_user_error(
          "{}. Its field '{}' makes a conversation of a record: ignore_fields={} "
          "reads the records without it",
          error.what(), chat_field, chat_field);
    }
    audit_.chat_template = template_->name();
    audit_.template_source = template_->source();
  }

  void tokenize(std::vector<Item>& batch) const {
    const auto count = static_cast<size_t>(std::max(options_.threads, 1));
    const auto work = [&](size_t thread) {
      for (size_t i = thread; i < batch.size(); i += count) {
        try {
          tokenize(batch[i]);
        } catch (...) {
          batch[i].error = std::current_exception();
        }
      }
    };
    std::vector<std::thread> threads;
    for (size_t thread = 1; thread < std::min(count, batch.size()); ++thread)
      threads.emplace_back(work, thread);
    work(0);
    for (std::thread& thread : threads) thread.join();
  }

  void tokenize(Item& item) const {
    Record record = parse(item.raw);
    item.raw.text = std::string();
    item.tokens = tokens_->of(std::move(record));
  }

  void store(Item& item) {
    if (item.error) std::rethrow_exception(item.error);
    check_form(item.tokens.form, item.raw);
    audit_.unused.add(item.tokens.unused);
    ignored_.add(item.tokens.ignored);
    audit_.unwritten.add(item.tokens.unwritten, item.raw.number);
    audit_.ends.add(item.tokens.ends);
    writer_.write(item.raw.number, item.raw.line, item.tokens);
    item = {};
  }

  void check_form(RecordForm form, const RawRecord& raw) {
    if (form == *form_) return;
    bad_.meet(form);
    throw RecordError(fmt::format("record {} is of the form {}, but the records before it are {}; "
                                  "one file holds one form",
                                  raw.number, name_of(form), audit_.form),
                      path_, raw.line);
  }

  // Adds a piece of a text that is too long to be tokenized at once; the text ends with its last
  // piece.
  void add_piece(const RawRecord& raw) {
    if (!raw.continues) windows_->begin();
    windows_->add(raw.text);
    if (!raw.is_open) audit_.count_record(windows_->finish());
  }

  void add_long(const RawRecord& raw) {
    const auto most = static_cast<size_t>(options_.max_length);
    if (rules_.has_encoder)
      throw RecordError(raw.number,
                        fmt::format("it has {} bytes; of encoder-decoders at most {} are read",
                                    raw.end - raw.begin, kMaxRecordBytes),
                        path_, raw.line, Fault::size);
    LongRecord record = read_long_record(raw, path_, rules_, most);
    check_form(record.form, raw);
    if (record.form == RecordForm::text) return add_long_text(raw, record);
    Item item;
    item.raw.number = raw.number;
    item.raw.line = raw.line;
    item.tokens = tokens_->of({.form = record.form,
                               .number = raw.number,
                               .line = raw.line,
                               .tokens = std::move(record.tokens),
                               .unused = std::move(record.unused),
                               .ignored = std::move(record.ignored)});
    store(item);
  }

  void add_long_text(const RawRecord& raw, const LongRecord& record) {
    LongString text(*raw.file, record.text_begin, record.text_end);
    audit_.unused.add(record.unused);
    ignored_.add(record.ignored);
    windows_->begin();
    try {
      for (std::string piece; text.next(piece);) windows_->add(piece);
      audit_.count_record(windows_->finish());
    } catch (const base::UserError& error) {
      throw base::UserError(fmt::format("record {}: {}", raw.number, error.what()),
                            {path_, raw.line, 0});
    }
  }

  const std::string& path_;
  const TokenizerOpener& open_;
  const DatasetOptions& options_;
  RecordRules rules_;
  const char* chat_field_;
  const Tokenizer* tokenizer_ = nullptr;  // opened when records first need it
  int32_t eos_ = -1;
  RecordReader reader_;
  int64_t records_ = 0;  // number of records read
  std::optional<RecordForm> form_;
  std::optional<ChatTemplate> template_;   // for conversations
  std::optional<RecordTokenizer> tokens_;  // set once the form is known
  std::optional<TextWindows> windows_;     // for texts
  std::vector<Item> batch_;
  int64_t batch_bytes_ = 0;
  DatasetAudit audit_;
  IgnoredFields ignored_;
  DocumentWriter writer_;
  BadRecords bad_;
};

}  // namespace

Dataset load_dataset(const std::string& path, const Tokenizer& tokenizer,
                     const DatasetOptions& options) {
  return load_dataset(
      path, [&]() -> const Tokenizer& { return tokenizer; }, options);
}

Dataset load_dataset(const std::string& path, const TokenizerOpener& open_tokenizer,
                     const DatasetOptions& options) {
  if (options.max_length < 2)
    base::throw_user_error("max_length={} is too small; a row needs at least 2 tokens",
                           options.max_length);
  try {
    return Loader(path, open_tokenizer, options, nullptr).run();
  } catch (const TextsAreChats& chats) {
    // The first records were read as plain texts, so the file is read again.
    return Loader(path, open_tokenizer, options, chats.field).run();
  }
}

int64_t reading_bytes(const std::string& path) {
  if (const int64_t making = making_bytes(path); making > 0) return kReadingBytes + making;
  const auto file_bytes = static_cast<int64_t>(std::filesystem::file_size(path));
  constexpr int64_t kBuffers = int64_t{8} << 20;
  constexpr int64_t kOfByte = 32;
  return std::min(kReadingBytes, kBuffers + kOfByte * std::min(file_bytes, kReadingBytes));
}

bool needs_tokenizer(const std::string& path, const RecordRules& rules) {
  RecordReader reader(path, unread_fields(rules));
  if (reader.format() == RecordReader::Format::plain_text) return true;
  for (RawRecord raw; reader.next(raw);) {
    try {
      const RecordForm form =
          raw.is_long ? form_of_long_record(raw, path, rules) : parse_record(raw, path, rules).form;
      return form != RecordForm::tokens;
    } catch (const RecordError&) {
      // The record's problem is reported after all records are read.
    }
  }
  return false;
}

}  // namespace snug::text
