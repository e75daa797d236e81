#include "train/rewards/record_reference.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/console.h"
#include "base/error.h"
#include "base/json_parser.h"
#include "base/shown_text.h"
#include "text/unicode/blank.h"
#include "text/unicode/utf8.h"

namespace snug::train {
namespace {

using nlohmann::json;

constexpr std::string_view kUsualField = "answer";
constexpr auto kOtherFields =
    std::to_array<std::string_view>({"solution", "completion", "output", "ground_truth", "target"});

[[noreturn]] void fail_at(const RewardedRecord& record, const std::string& message) {
  throw base::UserError(message, {record.file, record.line, 0});
}

json parsed(const RewardedRecord& record) {
  return base::parse_json_value(record.fields, [&](const std::string& problem, size_t) {
    fail_at(record, "broken JSON: " + problem);
  });
}

// What lies at a path; null where nothing does. A field whose own name has dots comes first.
const json* value_at(const json& value, std::string_view path) {
  if (value.is_object() && value.contains(path)) return &value.at(std::string(path));
  const size_t dot = path.find('.');
  const std::string name(path.substr(0, dot));
  const json* found = nullptr;
  if (value.is_object() && value.contains(name)) found = &value.at(name);
  if (value.is_array()) {
    size_t place = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), place);
    const bool is_place = error == std::errc() && stop == name.data() + name.size();
    if (is_place && place < value.size()) found = &value.at(place);
  }
  if (found == nullptr || dot == std::string_view::npos) return found;
  return value_at(*found, path.substr(dot + 1));
}

bool is_plain(const json& value) {
  return value.is_string() || value.is_number() || value.is_boolean();
}

std::string text_of(const json& value) {
  return value.is_string() ? text::repair_utf8(value.get_ref<const std::string&>()) : value.dump();
}

std::string names_of(const json& record) {
  std::string names;
  for (const auto& item : record.items()) names += (names.empty() ? "" : ", ") + item.key();
  return base::shown_text(names.empty() ? "none" : names);
}

}  // namespace

std::string RecordReference::of(const RewardedRecord& record) const {
  const json fields = parsed(record);
  if (!field_.empty()) {
    const json* value = value_at(fields, field_);
    if (value == nullptr || value->is_null())
      fail_at(record,
              fmt::format("reward {} holds answers against the field '{}', which the record "
                          "lacks; found: {}; reward_fields={}=FIELD names another",
                          function_, field_, names_of(fields), function_));
    if (!is_plain(*value))
      fail_at(record,
              fmt::format("reward {} holds answers against the field '{}', which is {}; "
                          "expected a text or a number, such as {}.0 of a list",
                          function_, field_, value->is_array() ? "a list" : "an object", field_));
    return text_of(*value);
  }
  const auto says = [&](std::string_view name) {
    return fields.contains(name) && is_plain(fields.at(std::string(name)));
  };
  if (says(kUsualField)) return text_of(fields.at(std::string(kUsualField)));
  for (const std::string_view name : kOtherFields) {
    if (!says(name)) continue;
    tell(fmt::format("the field '{}' of records", name));
    return text_of(fields.at(std::string(name)));
  }
  if (text::is_blank(record.answer))
    fail_at(record, fmt::format("reward {} holds answers against the field 'answer', which the "
                                "record lacks; found: {}; reward_fields={}=FIELD names another",
                                function_, names_of(fields), function_));
  tell("the answers that records hold");
  return text::repair_utf8(record.answer);
}

void RecordReference::tell(const std::string& taken) const {
  if (told_.insert(taken).second)
    base::say("reward {}: answers are held against {}", function_, taken);
}

}  // namespace snug::train
