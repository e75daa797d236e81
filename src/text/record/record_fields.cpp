#include "text/record/record_fields.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json_parser.h"
#include "text/chat/jinja/limits.h"
#include "text/chat/jinja/values/json_values.h"
#include "text/record/field_meaning.h"
#include "text/record/record_error.h"
#include "text/unicode/blank.h"

namespace snug::text {
RecordFields::RecordFields(const RawRecord& raw, const std::string& path,
                           std::span<const std::string> ignored, const RecordMapping* mapping)
    : raw_(raw), path_(path), ignored_(ignored), mapping_(mapping), meets_(ignored.size()) {
  document_ = base::parse_json_value(raw_.text, [&](const std::string& problem, size_t offset) {
    const auto* const text = raw_.text.data();
    const size_t first = raw_.text.find_first_not_of(" \t\r\n");
    if (raw_.number == 1 && first != std::string::npos && raw_.text[first] == '{' &&
        is_blank(std::string_view(raw_.text).substr(first + 1)))
      base::throw_user_error(
          "{}:{}: it begins with a JSON object over several lines; give each record in one line, "
          "or all records in one list ([...]), in which lines may break anywhere",
          path_, raw_.line);
    const auto lines = std::count(text, text + offset, '\n');
    throw RecordError(fmt::format("broken JSON in record {}: {}", raw_.number, problem), path_,
                      raw_.line + static_cast<int>(lines));
  });
  if (!document_.is_object())
    fail(fmt::format("expected an object, found {}", document_.type_name()));
  for (size_t i = 0; i < ignored_.size(); ++i) meets_[i] = document_.erase(ignored_[i]) > 0;
}

void RecordFields::fail(std::string_view message, Fault fault) const {
  throw RecordError(raw_.number, message, path_, raw_.line, fault);
}

const nlohmann::json& RecordFields::at(const char* key) const {
  use(key);
  return document_.at(key);
}

const jinja::Value& RecordFields::value_of(const char* key) const {
  use(key);
  try {
    if (value_.is(jinja::Value::Kind::undefined)) value_ = jinja::value_of_json(raw_.text);
  } catch (const jinja::TemplateError& error) {
    fail(error.what());
  }
  return *value_.as_dict().find(std::string_view(key));
}

std::string RecordFields::string(const char* key) const {
  const nlohmann::json& value = at(key);
  if (value.is_null()) return "";  // as pandas and datasets write what is empty
  if (!value.is_string())
    fail(fmt::format("expected the field '{}' to be a string, found {}", key, value.type_name()));
  return value.get<std::string>();
}

bool RecordFields::is_meant(std::string_view key) const {
  constexpr auto kPrompts =
      std::to_array<std::string_view>({"prompt", "question", "query", "instruction"});
  constexpr auto kAnswers =
      std::to_array<std::string_view>({"completion", "answer", "response", "output", "target"});
  const auto is_outdone_in = [&](std::span<const std::string_view> names) {
    return std::ranges::find(names, key) != names.end() &&
           std::ranges::any_of(names, [&](auto name) { return mapping_->makes(name); });
  };
  if (mapping_ == nullptr || mapping_->makes(key)) return true;
  return !is_outdone_in(kPrompts) && !is_outdone_in(kAnswers);
}

std::optional<const char*> RecordFields::first_of(std::span<const char* const> keys) const {
  const auto at =
      std::find_if(keys.begin(), keys.end(), [&](auto key) { return has(key) && is_meant(key); });
  return at == keys.end() ? std::nullopt : std::optional(*at);
}

std::optional<const char*> RecordFields::first_held(std::span<const char* const> keys) const {
  const auto at =
      std::find_if(keys.begin(), keys.end(), [&](auto key) { return holds(key) && is_meant(key); });
  return at == keys.end() ? std::nullopt : std::optional(*at);
}

void RecordFields::check_answer(const char* key, const std::string& answer) const {
  if (is_blank(answer)) fail(fmt::format("the answer ('{}') is empty", key), Fault::size);
}

std::string RecordFields::keys() const {
  std::string list;
  for (const auto& item : document_.items()) list += (list.empty() ? "" : ", ") + item.key();
  return list.empty() ? "none" : list;
}

bool RecordFields::is_ignored(std::string_view key) const {
  const auto at = std::find(ignored_.begin(), ignored_.end(), key);
  if (at == ignored_.end()) return false;
  meets_[static_cast<size_t>(at - ignored_.begin())] = true;
  return true;
}

std::vector<std::string> RecordFields::ignored() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < ignored_.size(); ++i)
    if (meets_[i]) names.push_back(ignored_[i]);
  return names;
}

bool RecordFields::is_used(std::string_view key) const {
  return std::find(used_.begin(), used_.end(), key) != used_.end();
}

void RecordFields::judge_unused(const Judge& judge) const {
  for (const auto& [key, value] : document_.items()) {
    if (is_used(key)) continue;
    if (const std::string why = judge(key, value); !why.empty()) fail(why);
  }
}

std::vector<std::string> RecordFields::unused() const {
  std::vector<std::string> names = left_;
  for (const auto& [key, value] : document_.items()) {
    if (says_nothing(value) || is_label_of_record(key, value)) continue;
    if (std::find(used_.begin(), used_.end(), key) != used_.end()) continue;
    if (const std::string why = why_refused(key, value, has("input_ids")); !why.empty()) fail(why);
    names.push_back(key);
  }
  return names;
}

}  // namespace snug::text
