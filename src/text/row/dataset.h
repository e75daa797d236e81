// The data of a run: every record of its sources, tokenized.
//
// The form of the records is seen from the fields (record_form.h). Instructions become the Alpaca
// prompt, conversations go through a chat template, both end in EOS or the template's end of turn;
// loss is on the answer only, unless train_on_prompt. What is longer than max_length is cut and
// counted. Text (.txt files, and records with the field text) is learned whole: a text longer than
// max_length is cut into windows that overlap by one token, so that every token but the first is
// a target exactly once. A .txt file is one text, or several that the EOS token's text
// (<|endoftext|>) separates; texts without a token are left out and counted. Records of the form
// tokens are taken as they are (token_record.h), need no tokenizer, and are cut like instructions.
// Records of the form preference become two documents each, what was chosen before what was not
// (preference_pair.h), which are cut at max_length each, as TRL's truncation_mode keep_start has
// it. Records of the form unpaired
// become two documents each as well, their own and their prompt with the answer of another example
// (mismatched_answers.h), both with the record's label.
//
// Whatever the files' sizes and forms, reading it takes at most reading_bytes of memory beyond the
// tokenizer and the index of documents: records are read in batches of kBatchBytes, longer texts
// and token lists in pieces, and tokens go to a file (document_store.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/chat/unwritten_counts.h"
#include "text/record/dataset_audit.h"
#include "text/record/record_form.h"
#include "text/row/dataset_options.h"
#include "text/row/document_store.h"
#include "text/row/held_out.h"
#include "text/row/record_source.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

// The size of a batch of records, which are read, then tokenized by all threads, then stored in
// order. A longer record is a batch of its own.
inline constexpr int64_t kBatchBytes = int64_t{1} << 20;

// The most memory that reading a file of any size takes. The largest part is one of these: a record
// of kMaxRecordBytes (2 MiB), kept as text while it is parsed (in a list of numbers, every 2 bytes
// become 16, in a vector that grows by doubling: 26 bytes per byte) or while it is rendered, joined
// and tokenized (5 bytes per token, in vectors that grow by doubling), up to 52 MiB if every byte
// is a token; or a batch; or a word of Model::kMaxBytes with its text (40 bytes per byte: 20 MiB).
// Buffers of files and lists, windows of words and thread stacks add 8 MiB.
inline constexpr int64_t kReadingBytes = int64_t{64} << 20;

// The bound for a file, of which no more than all can be held: 8 MiB for buffers, for each byte
// what is counted above, and what making its text takes (source/record_file.h).
int64_t reading_bytes(const std::string& path);

// What one source gave: the documents that follow those of the source before it.
struct LoadedSource {
  std::string name;
  int64_t end = 0;  // of its documents
  DatasetAudit audit;
};

struct Dataset {
  DocumentStore documents;
  std::vector<LoadedSource> sources{};
  DatasetAudit audit{};  // of all of them (DatasetAudit::add)
};

struct Datasets {
  Dataset training;
  Dataset held_out;  // without documents where no records are held out
};

// The documents of several sources, in their order, and apart from them those of the records that
// are held out. Throws BadRecordsError, after all files were read, for records that cannot be
// learned from, by reason, that are more than a source's options.skips allows: see record_form.h;
// and records of mixed forms, an answer that max_length cuts away entirely, an id outside of the
// vocabulary. Fewer are left out and counted. Throws UserError with file and line for a file that
// cannot be read: see record_reader.h; and for a source of which nothing is left.
Datasets load_datasets(const std::vector<RecordSource>& sources, const TokenizerOpener& open,
                       const std::optional<HeldOut>& held_out = std::nullopt);

// The same for one file.
Dataset load_dataset(const std::string& path, const Tokenizer& tokenizer,
                     const DatasetOptions& options);
Dataset load_dataset(const std::string& path, const TokenizerOpener& open_tokenizer,
                     const DatasetOptions& options);

// The bound that holds `number` of the sources' records out, which reads all of them. Throws
// UserError where that leaves none to train on.
HeldOut held_out_number(const std::vector<RecordSource>& sources, const TokenizerOpener& open,
                        int64_t number, uint64_t seed);

// Whether the file's records are of any form other than tokens, judged by the first readable one. A
// file without a readable record needs no tokenizer, since its errors are reported without it.
// Throws UserError if the file cannot be read.
bool needs_tokenizer(const std::string& path, const RecordRules& rules);

}  // namespace snug::text
