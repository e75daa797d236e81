// Records of every form: a byte that says which one is wanted, and a record. Of texts and tokens
// what is read of a long record, in pieces from the file, is what is read of it at once.
#include "fuzz_input.h"
#include "text/record/long_record.h"
#include "text/unicode/utf8.h"

namespace snug::fuzz {
namespace {

void require_same_as_long(const text::Record& record, text::RawRecord raw, const std::string& path,
                          const text::RecordRules& rules) {
  const std::string bytes = std::move(raw.text);
  const std::string file_path = fuzzed_file(path, bytes);
  text::RecordFile file(file_path);
  raw.text.clear();
  raw.is_long = true;
  raw.file = &file;
  raw.begin = 0;
  raw.end = std::ssize(bytes);
  require(text::form_of_long_record(raw, path, rules) == record.form, "the form is the same");
  const text::LongRecord read = text::read_long_record(raw, path, rules, bytes.size());
  require(read.form == record.form, "the form that is read is the same");
  require(read.tokens.ids == record.tokens.ids, "the tokens are the same");
  require(read.tokens.trained == record.tokens.trained, "what is learned is the same");
  if (record.form != text::RecordForm::text) return;
  text::LongString pieces(file, read.text_begin, read.text_end);
  std::string all;
  for (std::string piece; pieces.next(piece);) all += piece;
  require(all == record.answer, "the text is the same");
}

}  // namespace
}  // namespace snug::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace snug;
  fuzz::FuzzInput input(data, size);
  const uint8_t choice = input.byte();
  constexpr int kForms = 8;
  const std::vector<std::string> ignored{"id", "note"};
  text::RecordRules rules;
  if (choice % 16 < kForms) rules.form = static_cast<text::RecordForm>(choice % kForms);
  rules.has_encoder = choice % 64 >= 48;
  rules.texts_are_chats = choice >= 192;
  rules.ignored = ignored;
  text::RawRecord raw;
  raw.text = input.rest();
  raw.number = raw.line = 1;
  const std::string path = "data.jsonl";
  if (text::find_invalid_utf8(raw.text) != std::string_view::npos) return 0;  // the reader's matter
  fuzz::read_or_refuse(path, [&] {
    const text::Record record = text::parse_record(raw, path, rules);
    const bool may_be_long =
        record.form == text::RecordForm::text || record.form == text::RecordForm::tokens;
    if (may_be_long && !rules.has_encoder)
      fuzz::require_same_as_long(record, std::move(raw), path, rules);
  });
  return 0;
}
