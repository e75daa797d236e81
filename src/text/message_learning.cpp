#include "text/message_learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "text/field_meaning.h"

namespace snug::text {
namespace {

using jinja::Value;

struct LearningField {
  std::string_view name;
  bool is_mask = false;         // true says that it is not learned
  bool counts_for_all = false;  // roles; the tools that write the others ask the assistant's alone
};

constexpr auto kLearningFields = std::to_array<LearningField>({{"weight"},
                                                               {"loss"},
                                                               {"loss_mask"},
                                                               {"loss_scale"},
                                                               {"loss_weight"},
                                                               {"train", false, true},
                                                               {"training", false, true},
                                                               {"trainable", false, true},
                                                               {"masked", true, false}});

// What a message has that templates read, or that is of no account.
constexpr auto kReadByTemplates = std::to_array<std::string_view>(
    {"role", "content", "from", "value", "name", "tool_calls", "tool_call_id", "tools",
     "reasoning_content", "thinking", "reasoning", "function_call", "refusal"});

const LearningField* find_field(std::string_view name) {
  const auto* const at = std::find_if(kLearningFields.begin(), kLearningFields.end(),
                                      [&](const auto& field) { return field.name == name; });
  return at == kLearningFields.end() ? nullptr : at;
}

// Reads the fields of one message.
class LearningReader {
 public:
  LearningReader(const RecordFields& fields, std::string_view role, size_t number)
      : fields_(fields), role_(role), number_(number) {}

  void take(const std::string& name, const Value& value) {
    if (value.is(Value::Kind::none) || fields_.is_ignored(name)) return;
    if (const LearningField* field = find_field(name)) return take_field(*field, value);
    if (std::find(kReadByTemplates.begin(), kReadByTemplates.end(), name) != kReadByTemplates.end())
      return;
    if (is_label_of_record(name)) return;
    if (says_what_is_learned(name, value))
      refuse(name, "says what is to be learned, in a way that is not known here");
    fields_.leave(name);
  }

  bool is_learned() const { return is_learned_.value_or(true); }

 private:
  [[noreturn]] void refuse(std::string_view name, std::string_view why) const {
    fields_.fail(
        fmt::format("message {}: the field '{}' {}; ignore_fields={} reads the records without it",
                    number_, name, why, name));
  }

  void take_field(const LearningField& field, const Value& value) {
    const bool is_known = value.is_number() && (value.as_real() == 0 || value.as_real() == 1);
    if (!is_known)
      refuse(field.name, "is neither 0 or false nor 1 or true: a message is learned or it is not");
    const bool is_learned = (value.as_real() == 1) != field.is_mask;
    if (role_ != "assistant") {
      if (is_learned && field.counts_for_all)
        refuse(field.name,
               fmt::format("asks to learn a text of the role {}, but only the assistant's are "
                           "learned (or all of a record, with train_on_prompt=true)",
                           role_));
      return;
    }
    if (is_learned_.value_or(is_learned) != is_learned)
      refuse(field.name, "disagrees with another field on whether the message is learned");
    is_learned_ = is_learned;
  }

  const RecordFields& fields_;
  std::string_view role_;
  size_t number_;
  std::optional<bool> is_learned_;
};

}  // namespace

bool is_learned(const RecordFields& fields, const jinja::Dict& message, std::string_view role,
                size_t number) {
  LearningReader reader(fields, role, number);
  for (const auto& [name, value] : message.entries()) reader.take(name.as_text(), value);
  return reader.is_learned();
}

}  // namespace snug::text
