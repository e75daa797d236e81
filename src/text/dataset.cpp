#include "text/dataset.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/document.h"
#include "text/document_parts.h"
#include "text/long_record.h"
#include "text/mismatched_answers.h"
#include "text/record_form.h"
#include "text/record_reader.h"
#include "text/record_tokens.h"
#include "text/text_windows.h"

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
  Loader(const std::string& path, const TokenizerOpener& open, const DatasetOptions& options)
      : path_(path), open_(open), options_(options), reader_(path) {}

  Dataset run() {
    if (reader_.format() == RecordReader::Format::plain_text) {
      open_tokenizer();
      reader_.separate_by(std::string(tokenizer_->token_of(eos_).value_or("")));
    }
    for (RawRecord raw; reader_.next(raw);) {
      if (!form_) start(raw);
      if (raw.is_open || raw.continues) {
        flush();
        add_piece(raw);
      } else if (raw.is_long) {
        flush();
        add_long(raw);
      } else {
        hold(raw);
      }
    }
    flush();
    if (!form_) throw base::UserError("the data file holds no records", {path_, 0, 0});
    if (mismatched_) finish_mismatched();
    if (documents_.size() == 0)
      throw base::UserError(
          audit_.left_out > 0
              ? fmt::format("the prompt of each of the {} records has max_length={} tokens or "
                            "more, so that no answer is left; set a larger max_length",
                            audit_.records, options_.max_length)
              : fmt::format("the data holds nothing to learn: of its {} records none has text that "
                            "becomes a token and another one to predict",
                            audit_.records),
          {path_, 0, 0});
    Dataset result;
    documents_.finish();
    audit_.documents = documents_.size();
    audit_.tokens = documents_.tokens();
    result.documents = std::move(documents_);
    result.audit = std::move(audit_);
    return result;
  }

 private:
  void finish_mismatched() {
    try {
      mismatched_->finish();
    } catch (const base::UserError& error) {
      throw base::UserError(error.what(), {path_, 0, 0});
    }
    audit_.left_out = mismatched_->left_out();
  }

  void open_tokenizer() {
    if (tokenizer_ != nullptr) return;
    tokenizer_ = &open_();
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
    for (Item& item : batch_) store(item);
    batch_.clear();
    batch_bytes_ = 0;
  }

  Record parse(const RawRecord& raw) const {
    if (reader_.format() != RecordReader::Format::plain_text)
      return parse_record(raw, path_, options_.form, has_encoder());
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

  bool has_encoder() const { return options_.encoder_length > 0; }

  // The first record says of which form all are.
  void start(const RawRecord& first) {
    bool has_template = false;
    if (first.is_long) {
      form_ = form_of_long_record(first, path_, options_.form);
    } else {
      const Record record = parse(first);
      form_ = record.form;
      has_template = record.is_conversation();
    }
    if (*form_ == RecordForm::preference && !options_.form)
      throw base::UserError(
          "the records hold pairs of answers (chosen and rejected), which objective=dpo, orpo "
          "and kto learn from; set one of them, or give data with one answer to each prompt",
          {path_, first.line, 0});
    if (has_encoder()) require_parts(*form_, path_, first.line);
    audit_.form = name_of(*form_);
    if (*form_ != RecordForm::tokens) open_tokenizer();
    if (*form_ == RecordForm::text)
      windows_.emplace(*tokenizer_, options_.max_length, options_.train_on_prompt,
                       [this](auto ids, auto trained) { add(ids, trained); });
    if (options_.form == RecordForm::unpaired)
      mismatched_.emplace(options_.mismatch_batch, options_.max_length,
                          [this](const LabelledAnswer& example, const Document& mismatched) {
                            add_example(example, mismatched);
                          });
    if (has_template) {
      template_.emplace(options_.chat_template, *tokenizer_);
      audit_.chat_template = template_->name();
      audit_.template_source = template_->source();
    }
    tokens_.emplace(path_, options_, *form_,
                    RecordTokenizer::Means{tokenizer_, template_ ? &*template_ : nullptr});
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

  void check_form(RecordForm form, const RawRecord& raw) const {
    if (form != *form_)
      throw base::UserError(
          fmt::format("record {} is of the form {}, but the records before it are {}; one file "
                      "holds one form",
                      raw.number, name_of(form), audit_.form),
          {path_, raw.line, 0});
  }

  void count(int64_t tokens) {
    ++audit_.records;
    audit_.longest = std::max(audit_.longest, tokens);
    if (tokens == 0) ++audit_.empty;
  }

  void store(Item& item) {
    if (item.error) std::rethrow_exception(item.error);
    const TokenizedRecord& record = item.tokens;
    check_form(record.form, item.raw);
    count(record.document.ids.empty() && record.answers.empty() ? 0 : record.tokens);
    audit_.unwritten.add(record.unwritten, item.raw.number);
    audit_.ends.add(record.ends);
    if (mismatched_)
      store_answers(item.tokens.answers);
    else if (*form_ == RecordForm::preference)
      store_pair(record);
    else if (*form_ == RecordForm::text)
      store_windows(record.document);
    else if (has_encoder())
      store_parts(item);
    else
      store_cut(item);
    item = {};
  }

  // A piece of a text too long to be tokenized at once; its last one ends it.
  void add_piece(const RawRecord& raw) {
    if (!raw.continues) windows_->begin();
    windows_->add(raw.text);
    if (!raw.is_open) count(windows_->finish());
  }

  void add_long(const RawRecord& raw) {
    const auto most = static_cast<size_t>(options_.max_length);
    if (has_encoder())
      throw base::UserError(
          fmt::format("record {} has {} bytes; of encoder-decoders at most {} are read", raw.number,
                      raw.end - raw.begin, kMaxRecordBytes),
          {path_, raw.line, 0});
    LongRecord record = read_long_record(raw, path_, options_.form, most);
    check_form(record.form, raw);
    if (record.form == RecordForm::text) return add_long_text(raw, record);
    Item item;
    item.raw.number = raw.number;
    item.raw.line = raw.line;
    item.tokens = tokens_->of({.form = record.form,
                               .number = raw.number,
                               .line = raw.line,
                               .tokens = std::move(record.tokens)});
    store(item);
  }

  void add_long_text(const RawRecord& raw, const LongRecord& record) {
    LongString text(path_, record.text_begin, record.text_end);
    windows_->begin();
    try {
      for (std::string piece; text.next(piece);) windows_->add(piece);
      count(windows_->finish());
    } catch (const base::UserError& error) {
      throw base::UserError(fmt::format("record {}: {}", raw.number, error.what()),
                            {path_, raw.line, 0});
    }
  }

  void add(std::span<const int32_t> ids, std::span<const uint8_t> trained, int8_t label = 0) {
    documents_.add(ids, trained, label);
    audit_.trained_tokens += documents_.targets(documents_.size() - 1);
  }

  void store_windows(const Document& document) {
    const std::span<const int32_t> ids = document.ids;
    const std::span<const uint8_t> trained = document.trained;
    const auto most = static_cast<size_t>(options_.max_length);
    for (size_t begin = 0; begin + 1 < ids.size(); begin += most - 1) {
      const size_t size = std::min(most, ids.size() - begin);
      add(ids.subspan(begin, size), trained.subspan(begin, size));
    }
  }

  void store_cut(const Item& item) {
    const auto most = static_cast<int64_t>(options_.max_length);
    const TokenizedRecord& record = item.tokens;
    if (record.first_target >= most)
      throw base::UserError(
          fmt::format("record {}: {} begins at token {} of {}, so that max_length={} cuts "
                      "it away entirely; set max_length={} or more, or remove the record",
                      item.raw.number,
                      record.form == RecordForm::tokens ? "what is learned of it" : "its answer",
                      record.first_target + 1, record.tokens, most, record.first_target + 1),
          {path_, item.raw.line, 0});
    add_beginning(record.document, record.tokens);
  }

  void store_parts(const Item& item) {
    const TokenizedRecord& record = item.tokens;
    if (record.first_target >= options_.max_length)
      throw base::UserError(
          fmt::format("record {}: its first label with a loss is at {}, so that {} tokens of the "
                      "decoder leave none; set a larger max_target_length, or remove the record",
                      item.raw.number, record.first_target, options_.max_length),
          {path_, item.raw.line, 0});
    const CutParts cut = cut_parts(record.encoder_ids, record.document, options_, eos_);
    if (cut.lost > 0) ++audit_.truncated;
    audit_.cut_tokens += cut.lost;
    documents_.add_pair(cut.encoder_ids, cut.ids, cut.trained);
    audit_.trained_tokens += documents_.targets(documents_.size() - 1);
  }

  // Adds the beginning of a document of so many tokens, or all of it.
  void add_beginning(const Document& document, int64_t tokens) {
    count_cut(tokens);
    add_cut(document, 0);
  }

  void count_cut(int64_t tokens) {
    const auto most = static_cast<int64_t>(options_.max_length);
    if (tokens <= most) return;
    ++audit_.truncated;
    audit_.cut_tokens += tokens - most;
  }

  void add_cut(const Document& document, int8_t label) {
    const size_t size = std::min(document.ids.size(), static_cast<size_t>(options_.max_length));
    add(std::span(document.ids).first(size), std::span(document.trained).first(size), label);
  }

  void store_pair(const TokenizedRecord& record) {
    if (record.first_target >= options_.max_length) {
      ++audit_.left_out;
      return;
    }
    for (const Document* document : {&record.document, &record.rejected})
      add_beginning(*document, static_cast<int64_t>(document->ids.size()));
  }

  void store_answers(std::vector<LabelledAnswer>& answers) {
    for (const LabelledAnswer& answer : answers)
      if (answer.prompt_tokens < options_.max_length)
        count_cut(static_cast<int64_t>(answer.document.ids.size()));
    mismatched_->add(std::move(answers));
  }

  void add_example(const LabelledAnswer& example, const Document& mismatched) {
    ++audit_.examples;
    if (example.is_desirable) ++audit_.desirable;
    for (const Document* document : {&example.document, &mismatched})
      add_cut(*document, example.is_desirable ? int8_t{1} : int8_t{-1});
  }

  const std::string& path_;
  const TokenizerOpener& open_;
  const DatasetOptions& options_;
  const Tokenizer* tokenizer_ = nullptr;  // opened once records need it
  int32_t eos_ = -1;
  RecordReader reader_;
  std::optional<RecordForm> form_;
  std::optional<ChatTemplate> template_;         // for conversations
  std::optional<RecordTokenizer> tokens_;        // once the form is known
  std::optional<TextWindows> windows_;           // for text
  std::optional<MismatchedAnswers> mismatched_;  // for answers with labels
  std::vector<Item> batch_;
  int64_t batch_bytes_ = 0;
  DocumentStore documents_;
  DatasetAudit audit_;
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
  return Loader(path, open_tokenizer, options).run();
}

int64_t reading_bytes(int64_t file_bytes) {
  constexpr int64_t kBuffers = int64_t{8} << 20;
  constexpr int64_t kOfByte = 32;
  return std::min(kReadingBytes, kBuffers + kOfByte * std::min(file_bytes, kReadingBytes));
}

bool holds_tokens(const std::string& path, std::optional<RecordForm> wanted, bool has_encoder) {
  RecordReader reader(path);
  RawRecord first;
  if (reader.format() == RecordReader::Format::plain_text || !reader.next(first)) return false;
  if (first.is_long) return form_of_long_record(first, path, wanted) == RecordForm::tokens;
  return parse_record(first, path, wanted, has_encoder).form == RecordForm::tokens;
}

}  // namespace snug::text
