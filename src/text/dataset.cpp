#include "text/dataset.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/answer_document.h"
#include "text/blank.h"
#include "text/chat_template.h"
#include "text/document.h"
#include "text/long_record.h"
#include "text/preference_pair.h"
#include "text/record_form.h"
#include "text/record_reader.h"
#include "text/text_windows.h"

namespace snug::text {
namespace {

constexpr size_t kBatchRecords = 512;

struct Item {
  RawRecord raw;
  RecordForm form = RecordForm::text;
  Document document;         // empty: a text without a token
  Document rejected;         // preference: the other one of a pair
  int64_t tokens = 0;        // of the whole document, of which it may be the beginning
  int64_t first_target = 0;  // of the whole
  std::exception_ptr error;
};

// The first token that is to be predicted; none for a document that has none.
int64_t first_target_of(const Document& document) {
  const auto& trained = document.trained;
  for (size_t i = 1; i < trained.size(); ++i)
    if (trained[i] != 0) return static_cast<int64_t>(i);
  return 0;
}

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
      return parse_record(raw, path_, options_.form);
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
    if (*form_ == RecordForm::preference && options_.form != RecordForm::preference)
      throw base::UserError(
          "the records hold pairs of answers (chosen and rejected), which objective=dpo "
          "and orpo learn from; set one of them, or give data with one answer to each prompt",
          {path_, first.line, 0});
    audit_.form = name_of(*form_);
    if (*form_ != RecordForm::tokens) open_tokenizer();
    if (*form_ == RecordForm::text)
      windows_.emplace(*tokenizer_, options_.max_length, options_.train_on_prompt,
                       [this](auto ids, auto trained) { add(ids, trained); });
    if (!has_template) return;
    template_.emplace(options_.chat_template, *tokenizer_);
    audit_.chat_template = template_->name();
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
    item.form = record.form;
    if (record.form != *form_) return;
    if (record.form == RecordForm::tokens) return take_tokens(std::move(record.tokens), item);
    if (record.form == RecordForm::preference) return take_pair(record, item);
    if (record.form == RecordForm::text && is_blank(record.answer)) return;
    item.document = template_ ? tokenize_chat(record) : answer_document(record, *tokenizer_);
    item.tokens = static_cast<int64_t>(item.document.ids.size());
    item.first_target = first_target_of(item.document);
    if (item.first_target == 0) return give_up(record, item);
    if (!options_.train_on_prompt) return;
    std::fill(item.document.trained.begin(), item.document.trained.end(), uint8_t{1});
    item.first_target = 1;
  }

  // A text without a token is left out. That an answer has none is a mistake: it was said to.
  void give_up(const Record& record, Item& item) const {
    if (record.form != RecordForm::text)
      throw base::UserError(
          fmt::format("record {}: {} makes no token of what is to be learned; remove the record",
                      record.number, template_ ? "the chat template" : "the tokenizer"),
          {path_, record.line, 0});
    item.document = {};
  }

  void take_tokens(TokenRecord tokens, Item& item) const {
    if (tokens.largest >= options_.vocabulary)
      throw base::UserError(
          fmt::format(
              "record {}: input_ids holds the id {}, but the model's vocabulary ends at {}; "
              "the tokens were made for another model",
              item.raw.number, tokens.largest, options_.vocabulary - 1),
          {path_, item.raw.line, 0});
    item.tokens = tokens.size;
    item.first_target = options_.train_on_prompt ? 1 : tokens.first_target;
    item.document = {std::move(tokens.ids), std::move(tokens.trained)};
    if (options_.train_on_prompt)
      std::fill(item.document.trained.begin(), item.document.trained.end(), uint8_t{1});
  }

  void take_pair(const Record& record, Item& item) const {
    const auto fail = [&](const std::string& what) {
      throw base::UserError(fmt::format("record {}: {}", record.number, what),
                            {path_, record.line, 0});
    };
    if (record.is_conversation() != template_.has_value())
      fail("some records hold texts, others messages; one file holds one of them");
    try {
      PreferencePair pair = tokenize_pair(record, *tokenizer_, template_ ? &*template_ : nullptr);
      item.first_target = pair.prompt_tokens;
      item.tokens =
          static_cast<int64_t>(std::max(pair.chosen.ids.size(), pair.rejected.ids.size()));
      item.document = std::move(pair.chosen);
      item.rejected = std::move(pair.rejected);
      if (options_.train_on_chosen_prompt)
        std::fill(item.document.trained.begin(), item.document.trained.end(), uint8_t{1});
    } catch (const base::UserError& error) {
      fail(error.what());
    }
  }

  Document tokenize_chat(const Record& record) const {
    try {
      const auto wrap =
          template_->takes_special_tokens() ? SpecialTokens::before : SpecialTokens::none;
      return tokenize_parts(*tokenizer_, template_->render(record.conversation), wrap);
    } catch (const base::UserError& error) {
      throw base::UserError(fmt::format("record {}: {}", record.number, error.what()),
                            {path_, record.line, 0});
    }
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
    check_form(item.form, item.raw);
    count(item.document.ids.empty() ? 0 : item.tokens);
    if (*form_ == RecordForm::preference)
      store_pair(item);
    else if (*form_ == RecordForm::text)
      store_windows(item.document);
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
    LongRecord record = read_long_record(raw, path_, options_.form, most);
    check_form(record.form, raw);
    if (record.form == RecordForm::text) return add_long_text(raw, record);
    Item item;
    item.raw.number = raw.number;
    item.raw.line = raw.line;
    item.form = record.form;
    take_tokens(std::move(record.tokens), item);
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

  void add(std::span<const int32_t> ids, std::span<const uint8_t> trained) {
    documents_.add(ids, trained);
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
    if (item.first_target >= most)
      throw base::UserError(
          fmt::format("record {}: {} begins at token {} of {}, so that max_length={} cuts "
                      "it away entirely; set max_length={} or more, or remove the record",
                      item.raw.number,
                      item.form == RecordForm::tokens ? "what is learned of it" : "its answer",
                      item.first_target + 1, item.tokens, most, item.first_target + 1),
          {path_, item.raw.line, 0});
    add_beginning(item.document, item.tokens);
  }

  // Of a document of so many tokens, of which it may be the beginning.
  void add_beginning(const Document& document, int64_t tokens) {
    const auto most = static_cast<int64_t>(options_.max_length);
    if (most < tokens) {
      ++audit_.truncated;
      audit_.cut_tokens += tokens - most;
    }
    const size_t size = std::min(document.ids.size(), static_cast<size_t>(most));
    add(std::span(document.ids).first(size), std::span(document.trained).first(size));
  }

  void store_pair(const Item& item) {
    if (item.first_target >= options_.max_length) {
      ++audit_.left_out;
      return;
    }
    for (const Document* document : {&item.document, &item.rejected})
      add_beginning(*document, static_cast<int64_t>(document->ids.size()));
  }

  const std::string& path_;
  const TokenizerOpener& open_;
  const DatasetOptions& options_;
  const Tokenizer* tokenizer_ = nullptr;  // opened once records need it
  int32_t eos_ = -1;
  RecordReader reader_;
  std::optional<RecordForm> form_;
  std::optional<ChatTemplate> template_;  // for conversations
  std::optional<TextWindows> windows_;    // for text
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

bool holds_tokens(const std::string& path, std::optional<RecordForm> wanted) {
  RecordReader reader(path);
  RawRecord first;
  if (reader.format() == RecordReader::Format::plain_text || !reader.next(first)) return false;
  if (first.is_long) return form_of_long_record(first, path, wanted) == RecordForm::tokens;
  return parse_record(first, path, wanted).form == RecordForm::tokens;
}

}  // namespace snug::text
