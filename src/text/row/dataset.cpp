#include "text/row/dataset.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "text/record/bad_records.h"
#include "text/record/long_record.h"
#include "text/record/record_reader.h"
#include "text/row/source_loader.h"

namespace snug::text {
namespace {

// The field of each source that shows that its texts are conversations; null: none was found.
using ChatFields = std::vector<const char*>;

// A source whose first records were read as plain texts, though a later one is a conversation.
struct ReadAgain {
  size_t source;
  const char* chat_field;
};

void add_source(Dataset& dataset, const std::string& name, DatasetAudit audit) {
  if (dataset.sources.empty())
    dataset.audit = audit;
  else
    dataset.audit.add(audit);
  dataset.sources.push_back({name, dataset.documents.size(), std::move(audit)});
}

void load_source(const std::vector<RecordSource>& sources, size_t at, const TokenizerOpener& open,
                 const ChatFields& chat_fields, const std::optional<HeldOut>& held_out,
                 Datasets& loaded) {
  DocumentStore* const aside = held_out ? &loaded.held_out.documents : nullptr;
  SourceLoader loader(sources[at], open, chat_fields[at], {loaded.training.documents, aside},
                      held_out);
  try {
    loader.run();
  } catch (const TextsAreChats& chats) {
    throw ReadAgain{at, chats.field};
  }
  const std::string& name = sources[at].name;
  add_source(loaded.training, name, loader.take_audit(false));
  if (held_out) add_source(loaded.held_out, name + ", held out", loader.take_audit(true));
}

// All sources, so that one run tells of the bad records of all.
Datasets load_all(const std::vector<RecordSource>& sources, const TokenizerOpener& open,
                  const ChatFields& chat_fields, const std::optional<HeldOut>& held_out) {
  Datasets loaded;
  std::string bad;
  for (size_t at = 0; at < sources.size(); ++at) {
    try {
      load_source(sources, at, open, chat_fields, held_out, loaded);
    } catch (const BadRecordsError& error) {
      bad += (bad.empty() ? "" : ";\n") + std::string(error.what());
    }
  }
  if (!bad.empty()) throw BadRecordsError(bad);
  for (Dataset* dataset : {&loaded.training, &loaded.held_out}) dataset->documents.finish();
  return loaded;
}

}  // namespace

Datasets load_datasets(const std::vector<RecordSource>& sources, const TokenizerOpener& open,
                       const std::optional<HeldOut>& held_out) {
  for (const RecordSource& source : sources)
    if (source.options.max_length < 2)
      base::throw_user_error("max_length={} is too small; a row needs at least 2 tokens",
                             source.options.max_length);
  ChatFields chat_fields(sources.size());
  for (;;) {
    try {
      return load_all(sources, open, chat_fields, held_out);
    } catch (const ReadAgain& again) {
      chat_fields[again.source] = again.chat_field;
    }
  }
}

Dataset load_dataset(const std::string& path, const Tokenizer& tokenizer,
                     const DatasetOptions& options) {
  return load_dataset(
      path, [&]() -> const Tokenizer& { return tokenizer; }, options);
}

Dataset load_dataset(const std::string& path, const TokenizerOpener& open_tokenizer,
                     const DatasetOptions& options) {
  return load_datasets({{.name = path, .files = {path}, .options = options}}, open_tokenizer)
      .training;
}

HeldOut held_out_number(const std::vector<RecordSource>& sources, const TokenizerOpener& open,
                        int64_t number, uint64_t seed) {
  HeldOutCount count(number, seed);
  for (const RecordSource& source : sources) {
    int64_t records = 0;
    for (const std::string& file : source.files) {
      RecordReader reader(file);
      if (reader.format() == RecordReader::Format::plain_text) reader.separate_by(text_end(open()));
      for (RawRecord raw; (source.limit == 0 || records < source.limit) && reader.next(raw);) {
        if (raw.continues) continue;
        count.add(raw);
        ++records;
      }
    }
  }
  if (count.added() <= number)
    base::throw_user_error(
        "val_set_size={} is no fewer than the {} records of the data, so that none would be left "
        "to train on",
        number, count.added());
  return count.take_bound();
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
