#include "text/record/long_record.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_parser.h"
#include "text/record/field_meaning.h"
#include "text/record/json_escape.h"
#include "text/record/misread_form.h"
#include "text/record/record_error.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

using nlohmann::json;

constexpr int64_t kBlockBytes = int64_t{64} << 10;
constexpr int64_t kShownBytes = 4 << 10;  // of a string or number

// nlohmann's, less the name of its kind.
std::string complaint(const json::exception& error) {
  const std::string what = error.what();
  const size_t colon = what.find(": ");
  return what.substr(colon == std::string::npos ? 0 : colon + 2);
}

struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// The bytes of a record for the JSON parser, which holds each string and number whole: what of a
// string goes beyond kShownBytes is left out, and the place of the string is remembered.
class RecordBytes {
 public:
  RecordBytes(const RawRecord& raw, const TokenFail& fail)
      : file_(*raw.file), at_(raw.begin), end_(raw.end), fail_(fail) {}

  bool is_at_end() {
    skip();
    return at_ == end_;
  }
  char current() {
    skip();
    return byte();
  }
  void advance() {
    skip();
    step();
  }
  // Where the string that was read last lies, without its quotes.
  ByteRange last_string() const { return string_; }

 private:
  char byte() {
    if (at_ < block_begin_ || at_ >= block_begin_ + static_cast<int64_t>(block_.size())) {
      block_begin_ = at_;
      block_.resize(static_cast<size_t>(std::min(kBlockBytes, end_ - at_)));
      file_.read_at(at_, block_.data(), static_cast<int64_t>(block_.size()));
    }
    return block_[static_cast<size_t>(at_ - block_begin_)];
  }

  void skip() {
    while (at_ < end_ && in_string_ && at_ - string_.begin >= kShownBytes) {
      const char c = byte();
      if (c == '"' && !escapes_.is_within()) return;
      if (!is_skipping_ && !escapes_.is_boundary_before(c)) return;
      is_skipping_ = true;
      step();
    }
  }

  void step() {
    const char c = byte();
    ++at_;
    if (in_string_) {
      if (c == '"' && !escapes_.is_within()) {
        string_.end = at_ - 1;
        in_string_ = is_skipping_ = false;
      } else {
        escapes_.take(c);
      }
      return;
    }
    const bool is_of_number = (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E';
    number_bytes_ = is_of_number ? number_bytes_ + 1 : 0;
    if (number_bytes_ > kShownBytes)
      fail_(fmt::format("broken JSON: a number of more than {} digits", kShownBytes));
    if (c != '"') return;
    in_string_ = true;
    escapes_ = {};
    string_.begin = at_;
  }

  RecordFile& file_;
  int64_t at_;
  int64_t end_;
  const TokenFail& fail_;
  std::vector<char> block_;
  int64_t block_begin_ = 0;
  JsonEscapes escapes_;
  ByteRange string_;
  int64_t number_bytes_ = 0;
  bool in_string_ = false;
  bool is_skipping_ = false;
};

// What the parser reads through.
struct ByteIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  RecordBytes* bytes = nullptr;  // none: the end

  char operator*() const { return bytes->current(); }
  ByteIterator& operator++() {
    bytes->advance();
    return *this;
  }
  bool operator==(const ByteIterator& other) const { return is_end() == other.is_end(); }
  bool operator!=(const ByteIterator& other) const { return !(*this == other); }

 private:
  bool is_end() const { return bytes == nullptr || bytes->is_at_end(); }
};

// Takes what the forms tokens and text need out of the parser's hands, and of all other fields what
// says of which type they are.
class FieldCollector : public nlohmann::json_sax<json> {
 public:
  FieldCollector(const RecordBytes& bytes, const RecordRules& rules, const TokenFail& fail)
      : bytes_(bytes), ignored_(rules.ignored), fail_(fail) {}

  std::function<bool()> stops;  // asked at every key; then nothing more is wanted

  bool null() override { return take(nullptr); }
  bool boolean(bool value) override { return take(value); }
  bool number_integer(int64_t value) override { return take(value); }
  bool number_unsigned(uint64_t value) override { return take(value); }
  bool number_float(double value, const std::string& /*text*/) override { return take(value); }
  bool string(std::string& value) override {
    if (depth_ == 1 && !is_ignored_ && key_ == "text") text = bytes_.last_string();
    return take(value);
  }
  bool binary(json::binary_t& /*value*/) override { return true; }
  bool start_object(size_t /*size*/) override { return open("object"); }
  bool start_array(size_t /*size*/) override { return open("array"); }
  bool end_object() override {
    names_.pop_back();
    return close();
  }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (!names_.back().insert(name).second && name.size() < kShownBytes)
      fail_(fmt::format("broken JSON: the key {} is given twice in one object; keep one of them",
                        json(name).dump()));
    if (depth_ == 2 && !is_ignored_ && type_->is_object()) (*type_)[""] = nullptr;
    if (depth_ != 1) return true;
    is_ignored_ = std::find(ignored_.begin(), ignored_.end(), name) != ignored_.end();
    list_ = kTokenKeys.size();
    key_ = name;
    if (is_ignored_) {
      ignored.push_back(name);
      return true;
    }
    keys.push_back(name);
    if (stops && stops()) return false;
    const auto* found = std::find(kTokenKeys.begin(), kTokenKeys.end(), name);
    list_ = static_cast<size_t>(found - kTokenKeys.begin());
    return true;
  }
  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const json::exception& error) override {
    fail_("broken JSON: " + complaint(error));
    return false;
  }

  std::vector<std::string> keys;
  // Values of these: of a list one item of each type, of an object whether it is empty.
  std::map<std::string, json> types;
  std::vector<std::string> ignored;
  std::optional<ByteRange> text;
  TokenLists lists;

 private:
  bool is_list() const { return list_ < kTokenKeys.size(); }

  bool open(const char* type) {
    if (depth_ == 1 && is_list()) {
      if (std::string_view(type) != "array") refuse_list(type);
      lists.is_there[list_] = true;
    } else if (depth_ == 2 && is_list()) {
      fail_(fmt::format("{}[{}] is an {}; expected an integer below 2^31", kTokenKeys[list_],
                        lists.lists[list_].size(), type));
    }
    const bool is_object = std::string_view(type) == "object";
    if (is_object) names_.emplace_back();
    note(is_object ? json::object() : json::array());
    if (++depth_ > base::kMaxJsonDepth)
      fail_(
          fmt::format("broken JSON: values nest deeper than {}, the most that snug reads; is it "
                      "damaged?",
                      base::kMaxJsonDepth));
    return true;
  }

  bool close() {
    --depth_;
    return true;
  }

  // Remembers the type of a field, or of an item of a list in one.
  void note(const json& value) {
    if (is_ignored_ || depth_ == 0) return;
    if (depth_ == 1) {
      type_ = &types[key_];
      *type_ = value;
    } else if (depth_ == 2 && type_->is_array() &&
               std::none_of(type_->begin(), type_->end(),
                            [&](const json& item) { return item.type() == value.type(); })) {
      type_->push_back(value);
    }
  }

  bool take(const json& value) {
    note(value);
    if (!is_list()) return true;
    if (depth_ == 1 && !(value.is_null() && list_ > 0)) refuse_list(value.type_name());
    NumberList& list = lists.lists[list_];
    if (depth_ == 2) list.add(checked_number(value, kTokenKeys[list_], list.size(), fail_));
    return true;
  }

  void refuse_list(const char* type) const {
    fail_(fmt::format("expected the field '{}' to be a list of {}, found {}", kTokenKeys[list_],
                      list_ == 0 ? "token ids" : "integers", type));
  }

  const RecordBytes& bytes_;
  std::span<const std::string> ignored_;
  const TokenFail& fail_;
  int depth_ = 0;
  std::string key_;       // of depth 1
  json* type_ = nullptr;  // what `types` holds of it
  bool is_ignored_ = false;
  std::vector<std::unordered_set<std::string>> names_;  // of the objects that are open
  size_t list_ = kTokenKeys.size();
};

std::string joined(const std::vector<std::string>& keys) {
  std::string list;
  for (const std::string& key : keys) list += (list.empty() ? "" : ", ") + key;
  return list.empty() ? "none" : list;
}

std::optional<RecordForm> form_of(const FieldCollector& found, std::optional<RecordForm> wanted) {
  const auto has = [&](const char* key) {
    return std::find(found.keys.begin(), found.keys.end(), key) != found.keys.end();
  };
  return text::form_of(has, wanted);
}

TokenFail fail_of(const RawRecord& raw, const std::string& path) {
  return [&raw, &path](const std::string& message) {
    throw RecordError(raw.number, message, path, raw.line);
  };
}

// The fields that nothing is taken of, by the rules of RecordFields::unused.
std::vector<std::string> unused_keys(const FieldCollector& found, RecordForm form,
                                     const TokenFail& fail) {
  std::vector<std::string> unused;
  const bool has_tokens = found.types.contains("input_ids");
  for (const auto& [key, value] : found.types) {
    const bool is_used = form == RecordForm::text ? key == "text"
                                                  : std::find(kTokenKeys.begin(), kTokenKeys.end(),
                                                              key) != kTokenKeys.end();
    if (is_used || says_nothing(value) || is_label_of_record(key, value)) continue;
    if (const std::string why = why_refused(key, value, has_tokens); !why.empty()) fail(why);
    if (const std::string why = form == RecordForm::text ? why_no_text(key, value) : "";
        !why.empty())
      fail(why);
    unused.push_back(key);
  }
  return unused;
}

// A mapping looks at a record as a whole.
void refuse_mapped(const RawRecord& raw, const std::string& path, const RecordRules& rules) {
  if (rules.mapping == nullptr) return;
  throw RecordError(raw.number,
                    fmt::format("it has {} bytes, and with fields or roles a record may have {}",
                                raw.end - raw.begin, kMaxRecordBytes),
                    path, raw.line, Fault::size);
}

}  // namespace

RecordForm form_of_long_record(const RawRecord& raw, const std::string& path,
                               const RecordRules& rules) {
  refuse_mapped(raw, path, rules);
  const TokenFail fail = fail_of(raw, path);
  RecordBytes bytes(raw, fail);
  FieldCollector found(bytes, rules, fail);
  // Tokens count before all other forms.
  found.stops = [&] { return form_of(found, rules.form) == RecordForm::tokens; };
  json::sax_parse(ByteIterator{&bytes}, ByteIterator{}, &found);
  const auto form = form_of(found, rules.form);
  if (!form) fail(no_form_message(joined(found.keys), rules.form));
  return *form;
}

LongRecord read_long_record(const RawRecord& raw, const std::string& path, const RecordRules& rules,
                            size_t most) {
  refuse_mapped(raw, path, rules);
  const TokenFail fail = fail_of(raw, path);
  RecordBytes bytes(raw, fail);
  FieldCollector found(bytes, rules, fail);
  json::sax_parse(ByteIterator{&bytes}, ByteIterator{}, &found);
  const auto form = form_of(found, rules.form);
  if (!form) fail(no_form_message(joined(found.keys), rules.form));
  LongRecord record{.form = *form};
  if (*form == RecordForm::tokens) {
    if (!found.lists.is_there[0]) fail("expected the field 'input_ids' to be a list of token ids");
    record.tokens = read_token_lists(found.lists, most, fail);
  } else if (*form == RecordForm::text) {
    if (!found.text) fail("expected the field 'text' to be a string");
    record.text_begin = found.text->begin;
    record.text_end = found.text->end;
  } else {
    fail(fmt::format(
        "it has {} bytes, and one of the form {} may have {}; shorten it, or make it several",
        raw.end - raw.begin, name_of(*form), kMaxRecordBytes));
  }
  record.unused = unused_keys(found, *form, fail);
  record.ignored = std::move(found.ignored);
  return record;
}

bool LongString::next(std::string& piece) {
  if (at_ == end_) return false;
  std::string block(static_cast<size_t>(std::min(kBlockBytes, end_ - at_)), '\0');
  file_.read_at(at_, block.data(), static_cast<int64_t>(block.size()));
  JsonEscapes escapes;
  size_t whole = block.size();
  if (at_ + static_cast<int64_t>(block.size()) < end_) {
    whole = 0;
    for (size_t i = 0; i < block.size(); ++i) {
      if (escapes.is_boundary_before(block[i])) whole = i;
      escapes.take(block[i]);
    }
  }
  at_ += static_cast<int64_t>(whole);
  piece = base::parse_json_value('"' + block.substr(0, whole) + '"', [](const std::string& problem,
                                                                        size_t /*offset*/) {
            throw base::UserError("broken JSON in its text: " + problem);
          }).get<std::string>();
  return true;
}

}  // namespace snug::text
