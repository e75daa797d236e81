#include "text/dataset.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/document.h"
#include "text/record_form.h"
#include "text/record_reader.h"

namespace snug::text {
namespace {

// Records that are read, then tokenized by all threads, then stored in order.
constexpr size_t kBatchRecords = 512;
constexpr size_t kBatchBytes = size_t{4} << 20;

struct Item {
  RawRecord raw;
  RecordForm form = RecordForm::text;
  Document document;
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
    std::vector<Item> batch;
    while (read(batch)) {
      if (!form_) start(batch.front());
      tokenize(batch);
      for (Item& item : batch) store(item);
    }
    if (!form_) throw base::UserError("the data file holds no records", {path_, 0, 0});
    Dataset result;
    documents_.shrink();
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

  bool read(std::vector<Item>& batch) {
    batch.clear();
    size_t bytes = 0;
    while (batch.size() < kBatchRecords && bytes < kBatchBytes) {
      Item item;
      if (!reader_.next(item.raw)) break;
      bytes += item.raw.text.size();
      batch.push_back(std::move(item));
    }
    return !batch.empty();
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
  void start(const Item& first) {
    form_ = parse(first.raw).form;
    audit_.form = name_of(*form_);
    if (*form_ != RecordForm::tokens) open_tokenizer();
    if (*form_ != RecordForm::messages && *form_ != RecordForm::sharegpt) return;
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
    item.form = record.form;
    if (record.form != *form_) return;
    if (record.form == RecordForm::tokens) {
      check_vocabulary(record);
      item.document = {std::move(record.ids), std::move(record.trained)};
    } else if (template_) {
      item.document = tokenize_chat(record);
    } else {
      std::vector<Part> parts;
      const bool is_text = record.form == RecordForm::text;
      if (!is_text) parts.push_back({record.prompt, -1, false});
      parts.push_back({record.answer, -1, true});
      item.document = tokenize_parts(*tokenizer_, parts, SpecialTokens::around);
      // Some tokenizers end every text in EOS themselves.
      if (item.document.ids.back() != eos_) {
        item.document.ids.push_back(eos_);
        item.document.trained.push_back(1);
      }
      item.document.trained.back() = 1;
    }
    if (options_.train_on_prompt)
      std::fill(item.document.trained.begin(), item.document.trained.end(), uint8_t{1});
  }

  void check_vocabulary(const Record& record) const {
    const auto largest = std::max_element(record.ids.begin(), record.ids.end());
    if (*largest >= options_.vocabulary)
      throw base::UserError(
          fmt::format(
              "record {}: input_ids holds the id {}, but the model's vocabulary ends at {}; "
              "the tokens were made for another model",
              record.number, *largest, options_.vocabulary - 1),
          {path_, record.line, 0});
  }

  Document tokenize_chat(const Record& record) const {
    try {
      const auto wrap =
          template_->takes_special_tokens() ? SpecialTokens::before : SpecialTokens::none;
      return tokenize_parts(*tokenizer_, template_->render(record.messages), wrap);
    } catch (const base::UserError& error) {
      throw base::UserError(fmt::format("record {}: {}", record.number, error.what()),
                            {path_, record.line, 0});
    }
  }

  void store(Item& item) {
    if (item.error) std::rethrow_exception(item.error);
    if (item.form != *form_)
      throw base::UserError(
          fmt::format("record {} is of the form {}, but the records before it are {}; one file "
                      "holds one form",
                      item.raw.number, name_of(item.form), audit_.form),
          {path_, item.raw.line, 0});
    ++audit_.records;
    const Document& document = item.document;
    audit_.longest = std::max(audit_.longest, static_cast<int64_t>(document.ids.size()));
    if (*form_ == RecordForm::text) {
      store_windows(document);
    } else {
      store_cut(item);
    }
    item = {};
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
    const std::span<const int32_t> ids = item.document.ids;
    const std::span<const uint8_t> trained = item.document.trained;
    const size_t size = std::min(ids.size(), static_cast<size_t>(options_.max_length));
    const auto answer = std::find(trained.begin() + 1, trained.end(), 1) - trained.begin();
    if (answer >= static_cast<std::ptrdiff_t>(size))
      throw base::UserError(
          fmt::format("record {}: {} begins at token {} of {}, so that max_length={} cuts "
                      "it away entirely; set max_length={} or more, or remove the record",
                      item.raw.number,
                      item.form == RecordForm::tokens ? "what is learned of it" : "its answer",
                      answer + 1, ids.size(), options_.max_length, answer + 1),
          {path_, item.raw.line, 0});
    if (size < ids.size()) {
      ++audit_.truncated;
      audit_.cut_tokens += static_cast<int64_t>(ids.size() - size);
    }
    add(ids.first(size), trained.first(size));
  }

  const std::string& path_;
  const TokenizerOpener& open_;
  const DatasetOptions& options_;
  const Tokenizer* tokenizer_ = nullptr;  // opened once records need it
  int32_t eos_ = -1;
  RecordReader reader_;
  std::optional<RecordForm> form_;
  std::optional<ChatTemplate> template_;  // for conversations
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

bool holds_tokens(const std::string& path, std::optional<RecordForm> wanted) {
  RecordReader reader(path);
  RawRecord first;
  if (reader.format() == RecordReader::Format::plain_text || !reader.next(first)) return false;
  return parse_record(first, path, wanted).form == RecordForm::tokens;
}

}  // namespace snug::text
