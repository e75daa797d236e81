// How the records of a file are read whose fields have other names than Snug's: which field, path
// or template stands for which field, and which role for which. A record is rewritten before
// anything else looks at it (record_form.h), so every form can be mapped. Immutable.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace snug::text {

class RecordMapping {
 public:
  RecordMapping() = default;
  // `fields`: "prompt=question" takes the field question for prompt, "completion=answers.0.text"
  // what lies at a path of names and indices, "prompt={title}: {body}" a text with the values at
  // paths in it ({{ and }} are braces); "messages.role=speaker" takes a field of each message. A
  // list, "prompt=[\"{title}: {body}\", \"title\"]", takes the first of which a record has all
  // fields and they say something, else the last; "" as the last one is for a field that records
  // may lack. `roles`: "customer=user". Throws UserError for items that are not of this form,
  // fields and roles that Snug does not read, and one that is given twice.
  RecordMapping(std::span<const std::string> fields, std::span<const std::string> roles);

  // Whether it makes the field `name` of a record.
  bool makes(std::string_view name) const;

  // What it takes for the field `name`, as it is written; null where it does not make it.
  const std::string* taken_for(std::string_view name) const;

  // Whether something is made of the field `name` of a record, or of what lies in it.
  bool takes(std::string_view name) const;

  bool is_empty() const { return fields_.empty() && message_fields_.empty() && roles_.empty(); }

  // Throws what the caller has to say of a record that has not what is asked of it.
  using Fail = std::function<void(const std::string& what)>;

  // The record, a JSON object as text, with fields by Snug's names. Those that were taken are gone,
  // others stay. Text that is no JSON object stays as it is: what reads it next says so. A number
  // such as 1.00 becomes 1.0.
  std::string rewritten(const std::string& record, const Fail& fail) const;
  // The same for the fields and roles of messages alone, in a record that was rewritten before.
  std::string with_renamed_messages(const std::string& record) const;

 private:
  // What stands for a field: a path, whose value keeps its type, or a text with paths in braces:
  // pieces of text and of paths in turn.
  struct Source {
    std::string written;
    std::vector<std::string> texts{};  // one more than there are paths
    std::vector<std::string> paths{};
    bool is_path() const { return paths.size() == 1 && paths[0] == written; }
    bool is_nothing() const { return written.empty(); }
  };
  struct Field {
    std::string name;
    std::vector<Source> sources;  // the first that says something, else the last
  };
  struct MessageField {
    std::string list;  // such as messages
    Field field;
  };

  static Source source_of(const std::string& item, const std::string& written);
  static std::vector<Source> sources_of(const std::string& item, const std::string& written);
  // The source of a field that counts for a record or message.
  static const Source& source_for(const nlohmann::ordered_json& object, const Field& field);
  // What it says of that; nothing, and why, where that has not what it takes.
  static std::optional<nlohmann::ordered_json> value_of(const nlohmann::ordered_json& object,
                                                        const std::string& name,
                                                        const Source& source, std::string& why);
  void add_field(const std::string& item);
  void add_role(const std::string& item);
  void map_messages(nlohmann::ordered_json& record, const Fail& fail) const;
  void map_fields(nlohmann::ordered_json& record, const Fail& fail) const;
  void map_message_fields(const std::string& list, nlohmann::ordered_json& message,
                          const Fail& fail) const;
  void map_role(nlohmann::ordered_json& message) const;

  std::vector<Field> fields_;
  std::vector<MessageField> message_fields_;
  std::vector<std::pair<std::string, std::string>> roles_;
};

}  // namespace snug::text
