#include "base/json.h"

#include "base/error.h"
#include "base/file.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace snug::base {
namespace {

using nlohmann::json;

// Hands the parser one byte after another and counts them, so that the callback knows where it is.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* count_;
};

// Bytes of the sequence that begins here, or 0 where it is no UTF-8.
size_t sequence_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return 1;
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  return bytes;
}

// Bytes that are no UTF-8 as \xff: what quotes a broken file can still be printed and logged.
std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t bytes = sequence_bytes(text);
    if (bytes > 0)
      result += text.substr(0, bytes);
    else
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return result;
}

// nlohmann's "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..."
// without the parts that the location already says.
std::string plain_message(std::string_view message) {
  const size_t start = message.find(": ");
  return escaped(start == std::string_view::npos ? message : message.substr(start + 2));
}

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
  size_t position = 0;
  std::vector<std::unordered_set<std::string>> open_objects;
  const auto watch_keys = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == json::parse_event_t::object_end) open_objects.pop_back();
    if (event == json::parse_event_t::key &&
        !open_objects.back().insert(parsed.get_ref<const std::string&>()).second)
      throw UserError(
          fmt::format("the key {} is given twice in one object; keep one of them", parsed.dump()),
          location_in(text, position == 0 ? 0 : position - 1, file));
    return true;
  };
  try {
    return json::parse(CountingIterator(text.data(), &position),
                       CountingIterator(text.data() + text.size(), &position), watch_keys);
  } catch (const json::parse_error& error) {
    throw UserError("not valid JSON: " + plain_message(error.what()),
                    location_in(text, error.byte == 0 ? 0 : error.byte - 1, file));
  } catch (const json::out_of_range& error) {
    throw UserError("not valid JSON: " + plain_message(error.what()),
                    location_in(text, position, file));
  }
}

json read_json_file(const std::filesystem::path& path) {
  return parse_json(read_text_file(path), path.string());
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
