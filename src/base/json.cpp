#include "base/json.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json_parser.h"

#include <algorithm>
#include <cmath>

namespace snug::base {
namespace {

using nlohmann::json;

// A parsed document takes up to ten times the memory of its text. The indexes of the largest models
// are a tenth of this size.
constexpr int64_t kMaxJsonBytes = int64_t{64} << 20;

std::string type_text(const json& value) {
  return value.is_number() ? "the number " + value.dump() : std::string(value.type_name());
}

}  // namespace

Location location_in(std::string_view text, size_t offset, const std::string& file) {
  Location location{file, 1, 1};
  for (const char letter : text.substr(0, offset)) {
    if (letter == '\n') {
      ++location.line;
      location.column = 1;
    } else {
      ++location.column;
    }
  }
  return location;
}

json parse_json(std::string_view text, const std::string& file) {
  return parse_json_value(text, [&](const std::string& problem, size_t offset) {
    throw UserError(problem, location_in(text, offset, file));
  });
}

json read_json_file(const std::filesystem::path& path) {
  return parse_json(read_text_file(path, kMaxJsonBytes), path.string());
}

JsonObject::JsonObject(const json& value, std::string file, std::string parent_key)
    : value_(&value), file_(std::move(file)), parent_key_(std::move(parent_key)) {
  if (value.is_object()) return;
  const std::string what = parent_key_.empty() ? "the file" : fmt::format("'{}'", parent_key_);
  throw UserError(fmt::format("{} must hold a JSON object, but holds {}", what, type_text(value)),
                  {file_});
}

bool JsonObject::has(std::string_view key) const {
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

void JsonObject::fail(std::string_view key, const std::string& problem) const {
  const std::string name =
      parent_key_.empty() ? std::string(key) : fmt::format("{}.{}", parent_key_, key);
  throw UserError(fmt::format("'{}' {}", name, problem), {file_});
}

const json& JsonObject::at(std::string_view key, std::string_view expected) const {
  if (!has(key)) fail(key, fmt::format("is missing; expected {}", expected));
  return *value_->find(key);
}

int64_t JsonObject::integer(std::string_view key) const {
  const json& value = at(key, "a whole number");
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX})
    fail(key, fmt::format("is {}, which is too large", value.dump()));
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number == std::floor(number) && std::abs(number) < 0x1p53)
      return static_cast<int64_t>(number);
  }
  fail(key, fmt::format("must be a whole number, but is {}", type_text(value)));
}

double JsonObject::number(std::string_view key) const {
  const json& value = at(key, "a number");
  if (!value.is_number()) fail(key, fmt::format("must be a number, but is {}", type_text(value)));
  return value.get<double>();
}

bool JsonObject::boolean(std::string_view key) const {
  const json& value = at(key, "true or false");
  if (!value.is_boolean())
    fail(key, fmt::format("must be true or false, but is {}", type_text(value)));
  return value.get<bool>();
}

std::string JsonObject::text(std::string_view key) const {
  const json& value = at(key, "text");
  if (!value.is_string()) fail(key, fmt::format("must be text, but is {}", type_text(value)));
  return value.get<std::string>();
}

std::vector<std::string> JsonObject::texts(std::string_view key) const {
  const json& value = at(key, "a list of texts");
  if (!value.is_array())
    fail(key, fmt::format("must be a list of texts, but is {}", type_text(value)));
  std::vector<std::string> result;
  for (const json& item : value) {
    if (!item.is_string())
      fail(key, fmt::format("must be a list of texts, but holds {}", type_text(item)));
    result.push_back(item.get<std::string>());
  }
  return result;
}

std::vector<double> JsonObject::numbers(std::string_view key) const {
  const json& value = at(key, "a list of numbers");
  if (!value.is_array())
    fail(key, fmt::format("must be a list of numbers, but is {}", type_text(value)));
  std::vector<double> result;
  for (const json& item : value) {
    if (!item.is_number())
      fail(key, fmt::format("must be a list of numbers, but holds {}", type_text(item)));
    result.push_back(item.get<double>());
  }
  return result;
}

JsonObject JsonObject::object(std::string_view key) const {
  return {at(key, "an object"), file_,
          parent_key_.empty() ? std::string(key) : fmt::format("{}.{}", parent_key_, key)};
}

int64_t JsonObject::integer_or(std::string_view key, int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}

double JsonObject::number_or(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

bool JsonObject::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

std::string JsonObject::text_or(std::string_view key, std::string fallback) const {
  return has(key) ? text(key) : std::move(fallback);
}

}  // namespace snug::base
