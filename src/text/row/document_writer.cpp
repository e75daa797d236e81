#include "text/row/document_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "text/record/document_parts.h"
#include "text/record/record_error.h"

namespace snug::text {

void DocumentWriter::begin(RecordForm form, int32_t eos) {
  form_ = form;
  eos_ = eos;
  if (options_.form == RecordForm::unpaired)
    mismatched_.emplace(options_.mismatch_batch, options_.max_length,
                        [this](const LabelledAnswer& example, const Document& mismatched) {
                          add_example(example, mismatched);
                        });
}

void DocumentWriter::write(int64_t number, int line, TokenizedRecord& record) {
  const bool is_empty = record.document.ids.empty() && record.answers.empty();
  if (options_.truncation == base::Truncation::drop) require_whole(number, line, record);
  const int64_t tokens = is_empty ? 0 : record.tokens;
  if (mismatched_)
    write_answers(number, line, record.answers);
  else if (form_ == RecordForm::preference)
    write_pair(number, line, record);
  else if (form_ == RecordForm::text)
    write_windows(record.document);
  else if (options_.encoder_length > 0)
    write_parts(number, line, record);
  else
    write_cut(number, line, record);
  audit_.count_record(tokens);
}

void DocumentWriter::finish() {
  try {
    if (mismatched_) mismatched_->finish();
  } catch (const base::UserError& error) {
    throw base::UserError(error.what(), {path_, 0, 0});
  }
  audit_.documents = documents_.size() - documents_before_;
  audit_.tokens = documents_.tokens() - tokens_before_;
}

void DocumentWriter::add(std::span<const int32_t> ids, std::span<const uint8_t> trained,
                         int8_t label) {
  documents_.add(ids, trained, label);
  audit_.trained_tokens += documents_.targets(documents_.size() - 1);
}

void DocumentWriter::write_windows(const Document& document) {
  const std::span<const int32_t> ids = document.ids;
  const std::span<const uint8_t> trained = document.trained;
  const auto most = static_cast<size_t>(options_.max_length);
  for (size_t begin = 0; begin + 1 < ids.size(); begin += most - 1) {
    const size_t size = std::min(most, ids.size() - begin);
    add(ids.subspan(begin, size), trained.subspan(begin, size));
  }
}

void DocumentWriter::write_cut(int64_t number, int line, const TokenizedRecord& record) {
  const auto most = static_cast<int64_t>(options_.max_length);
  if (record.first_target >= most)
    throw RecordError(
        number,
        fmt::format("{} begins at token {} of {}, so that max_length={} cuts it away entirely",
                    record.form == RecordForm::tokens ? "what is learned of it" : "its answer",
                    record.first_target + 1, record.tokens, most),
        path_, line, {record.tokens, record.first_target, options_.positions});
  add_beginning(record.document, record.tokens);
}

void DocumentWriter::write_parts(int64_t number, int line, const TokenizedRecord& record) {
  if (record.first_target >= options_.max_length)
    throw RecordError(
        number,
        fmt::format("its first label with a loss is at {}, so that {} tokens of the decoder leave "
                    "none",
                    record.first_target, options_.max_length),
        path_, line,
        {std::ssize(record.document.ids), record.first_target, options_.positions,
         "max_target_length"});
  const CutParts cut = cut_parts(record.encoder_ids, record.document, options_, eos_);
  if (cut.lost > 0) ++audit_.truncated;
  audit_.cut_tokens += cut.lost;
  documents_.add_pair(cut.encoder_ids, cut.ids, cut.trained);
  audit_.trained_tokens += documents_.targets(documents_.size() - 1);
}

// Adds the first `tokens` tokens of a document.
void DocumentWriter::add_beginning(const Document& document, int64_t tokens) {
  count_cut(tokens, std::ssize(document.ids));
  add_cut(document, 0);
}

void DocumentWriter::count_cut(int64_t tokens, int64_t held) {
  const int64_t kept = std::min({tokens, held, int64_t{options_.max_length}});
  if (tokens == kept) return;
  ++audit_.truncated;
  audit_.cut_tokens += tokens - kept;
}

void DocumentWriter::add_cut(const Document& document, int8_t label) {
  const size_t size = std::min(document.ids.size(), static_cast<size_t>(options_.max_length));
  add(std::span(document.ids).first(size), std::span(document.trained).first(size), label);
}

void DocumentWriter::require_whole(int64_t number, int line, const TokenizedRecord& record) const {
  constexpr std::string_view kWhy = "which truncation=drop leaves out";
  if (options_.encoder_length == 0 && record.tokens > options_.max_length)
    throw RecordError(number,
                      fmt::format("it has {} tokens, more than max_length={}, {}", record.tokens,
                                  options_.max_length, kWhy),
                      path_, line, {record.tokens, record.first_target, options_.positions});
  if (options_.encoder_length > 0 && (std::ssize(record.encoder_ids) > options_.encoder_length ||
                                      std::ssize(record.document.ids) > options_.max_length))
    throw RecordError(
        number,
        fmt::format("its prompt has {} tokens and its answer {}, more than max_length={} and "
                    "max_target_length={} hold, {}",
                    record.encoder_ids.size(), record.document.ids.size(), options_.encoder_length,
                    options_.max_length, kWhy),
        path_, line, Fault::size);
}

void DocumentWriter::fail_prompt(int64_t number, int line, const NeededLength& needed) const {
  throw RecordError(
      number,
      fmt::format("its prompt has {} tokens, so that max_length={} leaves nothing of its answers",
                  needed.first_target, options_.max_length),
      path_, line, needed);
}

void DocumentWriter::write_pair(int64_t number, int line, const TokenizedRecord& record) {
  if (record.first_target >= options_.max_length)
    fail_prompt(number, line,
                {std::max(std::ssize(record.document.ids), std::ssize(record.rejected.ids)),
                 record.first_target, options_.positions});
  for (const Document* document : {&record.document, &record.rejected})
    add_beginning(*document, std::ssize(document->ids) + record.dropped);
}

// The answers of a record have one prompt.
void DocumentWriter::write_answers(int64_t number, int line, std::vector<LabelledAnswer>& answers) {
  NeededLength needed;
  for (const LabelledAnswer& answer : answers)
    needed = {std::max(needed.whole, std::ssize(answer.document.ids)),
              std::max(needed.first_target, answer.prompt_tokens), options_.positions};
  if (needed.first_target >= options_.max_length) fail_prompt(number, line, needed);
  for (const LabelledAnswer& answer : answers)
    count_cut(std::ssize(answer.document.ids) + answer.dropped, std::ssize(answer.document.ids));
  mismatched_->add(std::move(answers));
}

void DocumentWriter::add_example(const LabelledAnswer& example, const Document& mismatched) {
  ++audit_.examples;
  if (example.is_desirable) ++audit_.desirable;
  for (const Document* document : {&example.document, &mismatched})
    add_cut(*document, example.is_desirable ? int8_t{1} : int8_t{-1});
}

}  // namespace snug::text
