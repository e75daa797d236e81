#include "text/chat/message_learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "text/record/field_meaning.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

using jinja::Dict;
using jinja::Value;

struct LearningField {
  std::string_view name;
  bool is_mask = false;  // true means that the message is not learned
  // The value matters for every role; for other fields, tools only look at the assistant's.
  bool counts_for_all = false;
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

// Fields of a message that templates read, or that do not matter.
constexpr auto kReadByTemplates = std::to_array<std::string_view>(
    {"role", "content", "from", "value", "name", "tool_calls", "tool_call_id", "tools",
     "reasoning_content", "thinking", "reasoning", "function_call"});

// The same for a part of a content: its text, and fields that servers and other models add.
constexpr auto kReadOfParts = std::to_array<std::string_view>(
    {"type", "text", "thinking", "signature", "cache_control", "annotations", "citations"});

bool says_something(const Value& value) {
  return value.is(Value::Kind::text) ? !is_blank(value.as_text()) : value.is_true();
}

bool is_medium_of_part(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"image_url", "input_image", "video_url", "audio_url", "input_audio", "file"});
  return is_of_other_media(name) || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

const LearningField* find_field(std::string_view name) {
  const auto* const at = std::find_if(kLearningFields.begin(), kLearningFields.end(),
                                      [&](const auto& field) { return field.name == name; });
  return at == kLearningFields.end() ? nullptr : at;
}

// Other parts are refused elsewhere.
bool is_text_part(const Value& part) {
  const Value* text =
      part.is(Value::Kind::dict) ? part.as_dict().find(std::string_view("text")) : nullptr;
  return text != nullptr && text->is(Value::Kind::text);
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
    if (is_label_of_record(name, value)) return;
    if (name == "refusal") return refuse_refusal(name, value);
    if (is_of_other_media(name) && says_something(value))
      refuse(name, "goes with the text, which is all that is read of a message");
    if (says_what_is_learned(name, value))
      refuse(name, "says what is to be learned, in a way that is not known here");
    fields_.leave(name);
  }

  // A part of the content cannot be learned separately: its fields must agree with its message's.
  void take_part(const Dict& part) {
    LearningReader own(fields_, role_, number_);
    for (const auto& [key, value] : part.entries()) {
      const std::string& name = key.as_text();
      if (std::find(kReadOfParts.begin(), kReadOfParts.end(), name) != kReadOfParts.end()) continue;
      if (is_medium_of_part(name) && says_something(value) && !fields_.is_ignored(name))
        refuse(name, "stands in a part of 'content' next to a text, which is all that is read");
      own.take(name, value);
      if (role_ != "assistant") {
        if (own.says_learned()) is_learned_ = false;
      } else if (own.says_learned().value_or(is_learned()) != is_learned()) {
        refuse(name,
               "stands in a part of 'content' and says something else than the message, which is "
               "learned whole or not at all; let it stand on the message");
      }
    }
  }

  std::optional<bool> says_learned() const { return is_learned_; }

 private:
  bool is_learned() const { return is_learned_.value_or(true); }

  void refuse_refusal(std::string_view name, const Value& value) const {
    if (says_something(value))
      refuse(name,
             "holds what the assistant says when it refuses, and chat templates write 'content' "
             "only; move the text to 'content' if it is to be learned");
  }

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
      // Excluded even with train_on_prompt=true.
      if (!is_learned) is_learned_ = false;
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

std::optional<bool> says_learned(const RecordFields& fields, const jinja::Dict& message,
                                 std::string_view role, size_t number) {
  LearningReader reader(fields, role, number);
  for (const auto& [name, value] : message.entries()) reader.take(name.as_text(), value);
  const Value* content = message.find(std::string_view("content"));
  if (content != nullptr && content->is(Value::Kind::list))
    for (const Value& part : content->items())
      if (is_text_part(part)) reader.take_part(part.as_dict());
  return reader.says_learned();
}

}  // namespace snug::text
