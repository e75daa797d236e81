// Parses JSON text, with errors that carry file, line and column, and gives typed access to the
// keys of an object. Keys given twice are refused, since parsers disagree on which one counts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug::base {

struct Location;

// `file` names the text in errors. Throws UserError for text that is not exactly one JSON value,
// and for whatever base/json_parser.h refuses.
nlohmann::json parse_json(std::string_view text, const std::string& file);
nlohmann::json read_json_file(const std::filesystem::path& path);

// The line and column (both counted from 1, columns in bytes) of a byte offset in a text.
Location location_in(std::string_view text, size_t offset, const std::string& file);

// A view of a JSON object that names the file and the key in every error. A key whose value is null
// counts as absent, as in Hugging Face's files. The object must outlive the view.
class JsonObject {
 public:
  // Throws UserError when `value` is not an object.
  JsonObject(const nlohmann::json& value, std::string file, std::string parent_key = "");

  bool has(std::string_view key) const;
  // Throw UserError unless the key is present and of this type. An integer may be written as 32.0.
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  std::string text(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  JsonObject object(std::string_view key) const;

  int64_t integer_or(std::string_view key, int64_t fallback) const;
  double number_or(std::string_view key, double fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  std::string text_or(std::string_view key, std::string fallback) const;

  const nlohmann::json& value() const { return *value_; }
  const std::string& file() const { return file_; }
  // Throws a UserError that names this file and `key`, and says what is wrong with it.
  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;

 private:
  const nlohmann::json& at(std::string_view key, std::string_view expected) const;

  const nlohmann::json* value_;
  std::string file_;
  std::string parent_key_;
};

}  // namespace snug::base
