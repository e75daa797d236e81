#include "text/row/source_loader.h"

#include <algorithm>
#include <string_view>
#include <thread>
#include <utility>

#include "base/error.h"
#include "text/record/document_parts.h"
#include "text/row/dataset.h"

namespace snug::text {
namespace {

constexpr size_t kBatchRecords = 512;

}  // namespace

std::string text_end(const Tokenizer& tokenizer) {
  const auto eos = tokenizer.eos_id();
  return eos ? std::string(tokenizer.token_of(*eos).value_or("")) : "";
}

SourceLoader::SourceLoader(const RecordSource& source, const TokenizerOpener& open,
                           const char* chat_field, LoadedStores stores,
                           const std::optional<HeldOut>& held_out)
    : source_(source),
      options_(source.options),
      open_(open),
      held_out_(held_out),
      rules_{.form = options_.form,
             .has_encoder = options_.encoder_length > 0,
             .ignored = options_.ignored_fields,
             .mapping = options_.mapping.is_empty() ? nullptr : &options_.mapping,
             .learning = options_.learning,
             .texts_are_chats = chat_field != nullptr},
      chat_field_(chat_field) {
  side(false).writer.emplace(path_, options_, side(false).audit, stores.training);
  if (stores.held_out != nullptr)
    side(true).writer.emplace(path_, options_, side(true).audit, *stores.held_out);
}

void SourceLoader::run() {
  for (const std::string& file : source_.files) read_file(file);
  finish();
}

void SourceLoader::read_file(const std::string& file) {
  path_ = file;
  records_before_ = records_;
  // A record's side depends on all of its fields.
  const std::vector<std::string> unread =
      held_out_ ? std::vector<std::string>() : unread_fields(rules_);
  after_bad_records([&] { reader_.emplace(path_, unread); });
  if (reader_->list())
    for (Side& each : sides_) each.audit.list_told = reader_->list()->told();
  if (reader_->format() == RecordReader::Format::plain_text) {
    open_tokenizer();
    reader_->separate_by(text_end(*tokenizer_));
  }
  for (RawRecord raw; next(raw);)
    if (form_ || try_start(raw)) read(raw);
  flush();
}

// Errors that stop reading are reported after the bad records found before.
template <typename Action>
void SourceLoader::after_bad_records(const Action& action) {
  try {
    action();
  } catch (const base::UserError& error) {
    flush();
    if (bad_.count() == 0) throw;
    throw BadRecordsError(fmt::format("{}\n{}", bad_.list(), error.what()));
  }
}

// A record that fails is reported at the end; reading goes on.
template <typename Action>
bool SourceLoader::try_with(const Action& action) {
  try {
    action();
    return true;
  } catch (const RecordError& error) {
    bad_.add(error);
    return false;
  }
}

bool SourceLoader::next(RawRecord& raw) {
  const bool is_full = source_.limit > 0 && records_ >= source_.limit && !raw.is_open;
  bool is_there = false;
  if (!is_full) after_bad_records([&] { is_there = reader_->next(raw); });
  if (is_there) records_ = records_before_ + raw.number;
  return is_there;
}

void SourceLoader::read(RawRecord& raw) {
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

void SourceLoader::open_tokenizer() {
  if (tokenizer_ != nullptr) return;
  after_bad_records([&] { tokenizer_ = &open_(); });
  if (!tokenizer_->eos_id())
    base::throw_user_error(
        "the tokenizer has no EOS token, so a model could not learn where an answer ends; set "
        "eos_token in the model folder's tokenizer_config.json");
  eos_ = *tokenizer_->eos_id();
}

void SourceLoader::hold(RawRecord& raw) {
  const auto bytes = static_cast<int64_t>(raw.text.size());
  if (batch_.size() == kBatchRecords || batch_bytes_ + bytes > kBatchBytes) flush();
  batch_bytes_ += bytes;
  batch_.emplace_back();
  batch_.back().raw = std::move(raw);
}

void SourceLoader::flush() {
  tokenize(batch_);
  for (Item& item : batch_) try_with([&] { store(item); });
  batch_.clear();
  batch_bytes_ = 0;
}

Record SourceLoader::parse(const RawRecord& raw) const {
  if (reader_->format() != RecordReader::Format::plain_text)
    return parse_record(raw, path_, rules_);
  if (options_.form && *options_.form != RecordForm::text)
    throw base::UserError(fmt::format("data_format says {}, but this file is plain text; expected "
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
bool SourceLoader::try_start(const RawRecord& first) {
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

void SourceLoader::start(const Record& first, int line) {
  form_ = first.form;
  if (*form_ == RecordForm::preference && !options_.form)
    throw base::UserError(
        "the records hold pairs of answers (chosen and rejected), which objective=dpo, orpo, "
        "kto and simpo learn from; set one of them, or give data with one answer to each prompt",
        {path_, line, 0});
  if (rules_.has_encoder) require_parts(*form_, path_, line);
  require_end_to_keep(line);
  for (Side& each : sides_) each.audit.form = name_of(*form_);
  if (*form_ != RecordForm::tokens) open_tokenizer();
  if (*form_ == RecordForm::text)
    windows_.emplace(
        *tokenizer_, options_.max_length, options_.train_on_prompt,
        [this](auto ids, auto trained) { side(holds_windows_out_).writer->add(ids, trained); });
  for (Side& each : sides_)
    if (each.writer) each.writer->begin(*form_, eos_);
  if (first.is_conversation())
    open_template(first.chat_field);
  else
    note_idle_template();
  tokens_.emplace(path_, options_, *form_,
                  RecordTokenizer::Means{tokenizer_, template_ ? &*template_ : nullptr});
}

void SourceLoader::require_end_to_keep(int line) const {
  if (*form_ == RecordForm::text && options_.truncation != base::Truncation::end)
    throw base::UserError(
        "these records are texts, and texts are learned whole, in windows of max_length tokens: "
        "leave truncation out",
        {path_, line, 0});
  const bool has_turns = *form_ != RecordForm::tokens && !rules_.has_encoder;
  if (options_.truncation != base::Truncation::keep_end || has_turns) return;
  throw base::UserError(
      fmt::format("truncation=keep_end is built for conversations and prompts with answers, and "
                  "these records are {}; end cuts them at their end, drop leaves out those "
                  "that are too long",
                  rules_.has_encoder ? "for an encoder-decoder"
                                     : fmt::format("of the form {}", name_of(*form_))),
      {path_, line, 0});
}

void SourceLoader::open_template(const char* chat_field) {
  if (chat_field == nullptr) chat_field = chat_field_;
  rules_.texts_are_chats = chat_field != nullptr;
  if (chat_field != nullptr)
    for (Side& each : sides_) each.audit.chat_field = chat_field;
  try {
    template_.emplace(options_.chat_template, *tokenizer_);
  } catch (const base::UserError& error) {
    if (chat_field == nullptr) throw;
    base::throw_user_error(
        "{}. Its field '{}' makes a conversation of a record: ignore_fields={} "
        "reads the records without it",
        error.what(), chat_field, chat_field);
  }
  for (Side& each : sides_) {
    each.audit.chat_template = template_->name();
    each.audit.template_source = template_->source();
  }
}

// Prompts and answers that are texts stand as they are, which a user of a model for conversations
// may not expect.
void SourceLoader::note_idle_template() {
  if (*form_ == RecordForm::tokens || *form_ == RecordForm::text || rules_.has_encoder) return;
  try {
    const ChatTemplate idle(options_.chat_template, *tokenizer_);
    for (Side& each : sides_) each.audit.idle_template = idle.name();
  } catch (const base::UserError&) {  // there is none
  }
}

void SourceLoader::tokenize(std::vector<Item>& batch) const {
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

void SourceLoader::tokenize(Item& item) const {
  item.is_held_out = is_held_out(item.raw);
  Record record = parse(item.raw);
  item.raw.text = std::string();
  item.tokens = tokens_->of(std::move(record));
}

void SourceLoader::store(Item& item) {
  if (item.error) std::rethrow_exception(item.error);
  check_form(item.tokens.form, item.raw);
  Side& to = side(item.is_held_out);
  to.audit.unused.add(item.tokens.unused);
  ignored_.add(item.tokens.ignored);
  to.audit.unwritten.add(item.tokens.unwritten, item.raw.number);
  to.audit.ends.add(item.tokens.ends);
  to.writer->write(item.raw.number, item.raw.line, item.tokens);
  item = {};
}

void SourceLoader::check_form(RecordForm form, const RawRecord& raw) {
  if (form == *form_) return;
  bad_.meet(form);
  throw RecordError(
      fmt::format("record {} is of the form {}, but the records before it are {}; {}", raw.number,
                  name_of(form), name_of(*form_),
                  source_.files.size() == 1
                      ? "one file holds one form"
                      : "files of another form are an entry of their own: data=[A, B]"),
      path_, raw.line);
}

// Adds a piece of a text that is too long to be tokenized at once; the text ends with its last
// piece.
void SourceLoader::add_piece(const RawRecord& raw) {
  if (!raw.continues) begin_windows(raw);
  windows_->add(raw.text);
  if (!raw.is_open) side(holds_windows_out_).audit.count_record(windows_->finish());
}

void SourceLoader::begin_windows(const RawRecord& raw) {
  holds_windows_out_ = is_held_out(raw);
  windows_->begin();
}

void SourceLoader::add_long(const RawRecord& raw) {
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
  item.is_held_out = is_held_out(raw);
  item.tokens = tokens_->of({.form = record.form,
                             .number = raw.number,
                             .line = raw.line,
                             .tokens = std::move(record.tokens),
                             .unused = std::move(record.unused),
                             .ignored = std::move(record.ignored)});
  store(item);
}

void SourceLoader::add_long_text(const RawRecord& raw, const LongRecord& record) {
  LongString text(*raw.file, record.text_begin, record.text_end);
  begin_windows(raw);
  DatasetAudit& audit = side(holds_windows_out_).audit;
  audit.unused.add(record.unused);
  ignored_.add(record.ignored);
  try {
    for (std::string piece; text.next(piece);) windows_->add(piece);
    audit.count_record(windows_->finish());
  } catch (const base::UserError& error) {
    throw base::UserError(fmt::format("record {}: {}", raw.number, error.what()),
                          {path_, raw.line, 0});
  }
}

void SourceLoader::finish() {
  const std::string& name = source_.name;
  if (bad_.count() < records_ || options_.skips.refuses_any)
    bad_.hold_against(options_.skips, name, records_);
  if (!form_ && bad_.count() == 0)
    throw base::UserError("the data file holds no records", {name, 0, 0});
  DatasetAudit& audit = side(false).audit;
  audit.unmet = ignored_.unmet(unread_fields(rules_));
  audit.bad = bad_.count();
  audit.bad_told = bad_.told(name, records_);
  for (Side& each : sides_)
    if (each.writer) each.writer->finish();
  const int64_t documents = audit.documents + side(true).audit.documents;
  if (documents == 0 && bad_.count() == records_)
    bad_.fail(name, records_, "nothing is left to learn from");
  if (documents == 0) throw base::UserError(nothing_left(), {name, 0, 0});
}

DatasetAudit SourceLoader::take_audit(bool is_held_out) {
  return std::move(side(is_held_out).audit);
}

std::string SourceLoader::nothing_left() const {
  return fmt::format(
      "the data holds nothing to learn: of its {} records none has text that becomes a token and "
      "another one to predict",
      sides_[0].audit.records + sides_[1].audit.records);
}

}  // namespace snug::text
