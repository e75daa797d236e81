#include "serve/request_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json_parser.h"
#include "serve/api_error.h"

namespace snug::serve {

using nlohmann::ordered_json;

RequestFields::RequestFields(std::string_view body)
    : object_(base::parse_ordered_json(body, [](const std::string& problem, size_t offset) {
        throw ApiError(kBadRequest, fmt::format("the body is no JSON that can be read: {}, at byte "
                                                "{}",
                                                problem, offset));
      })) {
  if (!object_.is_object())
    throw ApiError(kBadRequest, "the body is not a JSON object, such as {\"messages\": [...]}");
}

RequestFields::RequestFields(const ordered_json& object, std::string name)
    : object_(object), name_(std::move(name)) {
  if (!object_.is_object())
    throw ApiError(kBadRequest, fmt::format("'{}' is not an object", name_), name_);
}

std::string RequestFields::path(std::string_view name) const {
  return name_.empty() ? std::string(name) : fmt::format("{}.{}", name_, name);
}

void RequestFields::refuse(std::string_view name, const std::string& problem) const {
  throw ApiError(kBadRequest, fmt::format("'{}' {}", path(name), problem), path(name));
}

const ordered_json* RequestFields::find(std::string_view name) {
  known_.emplace(name);
  const auto at = object_.find(std::string(name));
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

std::optional<int64_t> RequestFields::integer(std::string_view name, int64_t least, int64_t most) {
  const ordered_json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const bool is_integer =
      value->is_number_integer() &&
      (!value->is_number_unsigned() || value->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  const bool is_whole = value->is_number_float() &&
                        value->get<double>() == std::floor(value->get<double>()) &&
                        std::abs(value->get<double>()) < 0x1p53;
  const std::string expected = fmt::format("must be an integer from {} to {}", least, most);
  if (!is_integer && !is_whole) refuse(name, expected);
  const auto number =
      is_integer ? value->get<int64_t>() : static_cast<int64_t>(value->get<double>());
  if (number < least || number > most) refuse(name, fmt::format("is {}; it {}", number, expected));
  return number;
}

std::optional<double> RequestFields::number(std::string_view name, double least, double most) {
  const ordered_json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse(name, "must be a number");
  const double number = value->get<double>();
  if (!(number >= least && number <= most))
    refuse(name, fmt::format("is {}; it must be from {} to {}", number, least, most));
  return number;
}

std::optional<bool> RequestFields::boolean(std::string_view name) {
  const ordered_json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(name, "must be true or false");
  return value->get<bool>();
}

std::optional<std::string> RequestFields::text(std::string_view name) {
  const ordered_json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(name, "must be a text");
  return value->get<std::string>();
}

std::vector<std::string> RequestFields::texts(std::string_view name, size_t most) {
  const ordered_json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  const bool is_list = value->is_array() && std::ranges::all_of(*value, [](const auto& item) {
                         return item.is_string();
                       });
  if (!is_list) refuse(name, "must be a text or a list of texts");
  if (value->size() > most) refuse(name, fmt::format("has more than {} texts", most));
  return value->get<std::vector<std::string>>();
}

std::optional<RequestFields> RequestFields::object(std::string_view name) {
  const ordered_json* value = find(name);
  if (value == nullptr) return std::nullopt;
  return RequestFields(*value, path(name));
}

void RequestFields::not_built(std::string_view name, const ordered_json& harmless,
                              std::string_view advice) {
  const ordered_json* value = find(name);
  if (value != nullptr && *value != harmless) refuse(name, fmt::format("is not built: {}", advice));
}

void RequestFields::refuse_others() const {
  for (const auto& [name, value] : object_.items())
    if (!known_.contains(name) && !value.is_null())
      refuse(name, "is no field that this server knows; leave it out");
}

}  // namespace snug::serve
