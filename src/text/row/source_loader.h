// Reads one source of records and stores their documents: see dataset.h. A record's side
// (held_out.h) decides whether it trains or evaluates. One object reads one source once. Not
// thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "text/chat/chat_template.h"
#include "text/record/bad_records.h"
#include "text/record/dataset_audit.h"
#include "text/record/long_record.h"
#include "text/record/record_form.h"
#include "text/record/record_reader.h"
#include "text/record/record_tokens.h"
#include "text/row/document_store.h"
#include "text/row/document_writer.h"
#include "text/row/held_out.h"
#include "text/row/record_source.h"
#include "text/tokenizer/text_windows.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

// The stores that a source's documents are added to.
struct LoadedStores {
  DocumentStore& training;
  DocumentStore* held_out = nullptr;  // where records are held out
};

// What separates the texts of a plain text file: the EOS token's text; empty where there is none.
std::string text_end(const Tokenizer& tokenizer);

class SourceLoader {
 public:
  // `chat_field`: the field of a record that shows that the source's texts are conversations; null:
  // none has been found. The arguments must outlive the object.
  SourceLoader(const RecordSource& source, const TokenizerOpener& open, const char* chat_field,
               LoadedStores stores, const std::optional<HeldOut>& held_out);

  // Throws TextsAreChats where a record shows that those before it were read wrongly; what is
  // stored is then of no use. Else as load_datasets does.
  void run();

  // After run(): what is told of the documents that train, or of those that are held out.
  DatasetAudit take_audit(bool is_held_out);

 private:
  // What becomes of the records that train, or of those that are held out.
  struct Side {
    DatasetAudit audit;
    std::optional<DocumentWriter> writer;
  };
  // A record on its way from the file to the store.
  struct Item {
    RawRecord raw;
    TokenizedRecord tokens;
    std::exception_ptr error;
    bool is_held_out = false;
  };

  void read_file(const std::string& file);
  bool next(RawRecord& raw);
  void read(RawRecord& raw);
  void hold(RawRecord& raw);
  void flush();

  // How records are read: seen from the first one.
  bool try_start(const RawRecord& first);
  void start(const Record& first, int line);
  void require_end_to_keep(int line) const;
  void open_tokenizer();
  void open_template(const char* chat_field);
  void note_idle_template();

  Record parse(const RawRecord& raw) const;
  void tokenize(std::vector<Item>& batch) const;
  void tokenize(Item& item) const;
  void store(Item& item);
  void check_form(RecordForm form, const RawRecord& raw);

  void add_piece(const RawRecord& raw);
  void add_long(const RawRecord& raw);
  void add_long_text(const RawRecord& raw, const LongRecord& record);
  void begin_windows(const RawRecord& raw);

  void finish();
  std::string nothing_left() const;
  template <typename Action>
  void after_bad_records(const Action& action);
  template <typename Action>
  bool try_with(const Action& action);

  bool is_held_out(const RawRecord& raw) const { return held_out_ && held_out_->holds(raw); }
  Side& side(bool is_held_out) { return sides_[is_held_out ? 1 : 0]; }

  const RecordSource& source_;
  const DatasetOptions& options_;
  const TokenizerOpener& open_;
  const std::optional<HeldOut>& held_out_;
  RecordRules rules_;
  const char* chat_field_;
  const Tokenizer* tokenizer_ = nullptr;  // opened when records first need it
  int32_t eos_ = -1;
  std::string path_;  // of the file that is read
  std::optional<RecordReader> reader_;
  int64_t records_ = 0;         // that were read
  int64_t records_before_ = 0;  // of them, in the files before
  std::optional<RecordForm> form_;
  std::optional<ChatTemplate> template_;   // for conversations
  std::optional<RecordTokenizer> tokens_;  // set once the form is known
  std::optional<TextWindows> windows_;     // for texts
  bool holds_windows_out_ = false;         // the text that they are of
  std::vector<Item> batch_;
  int64_t batch_bytes_ = 0;
  std::array<Side, 2> sides_;
  IgnoredFields ignored_;
  BadRecords bad_;
};

}  // namespace snug::text
