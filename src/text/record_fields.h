// A record, parsed: its fields, with its place for complaints.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/value.h"
#include "text/record_reader.h"

namespace snug::text {

// The record and the path must outlive it.
class RecordFields {
 public:
  // Throws UserError with file and line where the record is no JSON object.
  RecordFields(const RawRecord& raw, const std::string& path);

  // Throws UserError with the record's place.
  [[noreturn]] void fail(std::string_view message) const;

  bool has(const char* key) const { return document_.contains(key); }
  const nlohmann::json& document() const { return document_; }
  const nlohmann::json& at(const char* key) const { return document_.at(key); }

  // The first of `keys` that the record has.
  std::optional<const char*> first_of(std::initializer_list<const char*> keys) const;

  // Throws UserError where the field is no string.
  std::string string(const char* key) const;

  // Throws UserError where what is to be learned is empty: what field `key` says.
  void check_answer(const char* key, const std::string& answer) const;

  // The record with its keys in their order, and with numbers as they are written.
  const jinja::Value& value() const;

  // The names of all fields, "id, question".
  std::string keys() const;

 private:
  const RawRecord& raw_;
  const std::string& path_;
  nlohmann::json document_;
  mutable jinja::Value value_;  // once it is asked for
};

}  // namespace snug::text
