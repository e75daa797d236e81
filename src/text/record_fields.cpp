#include "text/record_fields.h"

#include <algorithm>

#include "base/error.h"
#include "base/json_parser.h"
#include "text/blank.h"
#include "text/jinja/json_values.h"
#include "text/jinja/limits.h"

namespace snug::text {

RecordFields::RecordFields(const RawRecord& raw, const std::string& path) : raw_(raw), path_(path) {
  document_ = base::parse_json_value(raw_.text, [&](const std::string& problem, size_t offset) {
    const auto* const text = raw_.text.data();
    const auto lines = std::count(text, text + offset, '\n');
    throw base::UserError(fmt::format("broken JSON in record {}: {}", raw_.number, problem),
                          {path_, raw_.line + static_cast<int>(lines), 0});
  });
  if (!document_.is_object())
    fail(fmt::format("expected an object, found {}", document_.type_name()));
}

void RecordFields::fail(std::string_view message) const {
  throw base::UserError(fmt::format("record {}: {}", raw_.number, message), {path_, raw_.line, 0});
}

std::optional<const char*> RecordFields::first_of(std::initializer_list<const char*> keys) const {
  for (const char* key : keys)
    if (has(key)) return key;
  return std::nullopt;
}

std::string RecordFields::string(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_string())
    fail(fmt::format("expected the field '{}' to be a string, found {}", key, value.type_name()));
  return value.get<std::string>();
}

void RecordFields::check_answer(const char* key, const std::string& answer) const {
  if (is_blank(answer))
    fail(fmt::format("the answer ('{}') is empty; remove the record or fill it in", key));
}

const jinja::Value& RecordFields::value() const {
  try {
    if (value_.is(jinja::Value::Kind::undefined)) value_ = jinja::value_of_json(raw_.text);
  } catch (const jinja::TemplateError& error) {
    fail(error.what());
  }
  return value_;
}

std::string RecordFields::keys() const {
  std::string list;
  for (const auto& item : document_.items()) list += (list.empty() ? "" : ", ") + item.key();
  return list.empty() ? "none" : list;
}

}  // namespace snug::text
