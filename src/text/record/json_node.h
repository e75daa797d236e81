// A value inside a JSON file that knows where it stands, so that every complaint names the file and
// the path to the value. Wraps a document that must outlive it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug::text {

class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string file, std::string path = "");

  const nlohmann::json& value() const { return *value_; }
  const std::string& file() const { return file_; }

  bool is_null() const;
  bool is_object() const;
  bool is_string() const;
  bool has(std::string_view key) const;  // present and not null

  // Each throws UserError where the key is absent or its value has another type.
  JsonNode object(std::string_view key) const;
  std::vector<JsonNode> array(std::string_view key) const;
  std::string string(std::string_view key) const;
  std::string character(std::string_view key) const;  // one, of as many bytes as it has
  int64_t integer(std::string_view key) const;
  bool boolean(std::string_view key) const;

  std::string string_or(std::string_view key, std::string_view fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  std::string as_string() const;

  // Throws UserError naming the first key that is not among `known`: what is not understood is
  // never skipped.
  void only_keys(std::initializer_list<std::string_view> known) const;

  // Throws UserError "FILE: PATH: MESSAGE".
  [[noreturn]] void fail(std::string_view message) const;

 private:
  JsonNode child(std::string_view key) const;

  const nlohmann::json* value_;
  std::string file_;
  std::string path_;
};

}  // namespace snug::text
