// A record, parsed: its fields, with its place for complaints, and which of them are used.
#pragma once

#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/jinja/values/value.h"
#include "text/record/record_error.h"
#include "text/record/record_mapping.h"
#include "text/record/record_reader.h"

namespace snug::text {

// All that it is given must outlive it. One thread.
class RecordFields {
 public:
  // The fields named in `ignored` are as if they were not there; `mapping` made some of them, null:
  // none. Throws RecordError where the record is no JSON object.
  RecordFields(const RawRecord& raw, const std::string& path,
               std::span<const std::string> ignored = {}, const RecordMapping* mapping = nullptr);

  // Throws RecordError with the record's place.
  [[noreturn]] void fail(std::string_view message, Fault fault = Fault::mapping) const;

  bool has(const char* key) const { return document_.contains(key); }
  // Whether it is there and not null.
  bool holds(const char* key) const { return has(key) && !document_.at(key).is_null(); }
  const nlohmann::json& document() const { return document_; }

  // These count the field as used. Requires that it is there.
  const nlohmann::json& at(const char* key) const;
  // With its keys in their order, and with numbers as they are written.
  const jinja::Value& value_of(const char* key) const;
  // Empty where it is null. Throws RecordError where the field is no string.
  std::string string(const char* key) const;

  // Whether a field stands for what its name says: of the names of a prompt, and of those of an
  // answer, the mapping's count, if it makes one of them, and not those that the record has by
  // chance.
  bool is_meant(std::string_view key) const;

  // The first of `keys` that the record has and that is meant, and the first that is not null.
  std::optional<const char*> first_of(std::span<const char* const> keys) const;
  std::optional<const char*> first_held(std::span<const char* const> keys) const;

  // Throws RecordError where what is to be learned is empty: what field `key` says.
  void check_answer(const char* key, const std::string& answer) const;

  // The names of all fields, "id, question".
  std::string keys() const;

  // Whether a field that a message has is ignored.
  bool is_ignored(std::string_view key) const;
  // The ignored fields that the record, or a message of it, has.
  std::vector<std::string> ignored() const;
  // Counts a field as used that is read in another way, or leaves one of a message unused.
  void use(std::string_view key) const { used_.emplace_back(key); }
  bool is_used(std::string_view key) const;
  void leave(std::string_view message_key) const { left_.emplace_back(message_key); }

  // Throws RecordError for what `judge` says of a field that nothing has used: why the record is
  // not read next to it. It says nothing of most.
  using Judge = std::function<std::string(std::string_view field, const nlohmann::json& value)>;
  void judge_unused(const Judge& judge) const;

  // The fields that say something which nothing has used, first those of messages. Throws
  // RecordError where one of them would change what is learned.
  std::vector<std::string> unused() const;

 private:
  const RawRecord& raw_;
  const std::string& path_;
  std::span<const std::string> ignored_;
  const RecordMapping* mapping_;
  nlohmann::json document_;
  mutable jinja::Value value_;  // once it is asked for
  mutable std::vector<std::string> used_;
  mutable std::vector<std::string> left_;
  mutable std::vector<bool> meets_;  // each ignored field
};

}  // namespace snug::text
