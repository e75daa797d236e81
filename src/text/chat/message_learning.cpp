#include "text/chat/message_learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "text/chat/jinja/values/compare.h"
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
                                                               {"masked", true, true}});

// Fields of a message that templates read, or that do not matter.
constexpr auto kReadByTemplates = std::to_array<std::string_view>(
    {"role", "content", "from", "value", "name", "tool_calls", "tool_call_id", "tools",
     "reasoning_content", "thinking", "reasoning", "function_call"});

// Fields that servers and other models add next to the text of a part.
constexpr auto kReadOfParts =
    std::to_array<std::string_view>({"type", "signature", "cache_control"});

// Fields of a call, and of its function, that templates read.
constexpr auto kReadOfCalls = std::to_array<std::string_view>(
    {"id", "type", "index", "function", "name", "arguments", "parameters"});

// Names of fields that hold calls and are not read.
constexpr auto kOtherCalls =
    std::to_array<std::string_view>({"tool_call", "function_calls", "toolCalls", "toolCall",
                                     "functionCall", "tool_uses", "tool_use", "calls"});

bool says_something(const Value& value) {
  return value.is(Value::Kind::text) ? !is_blank(value.as_text()) : value.is_true();
}

bool is_empty_value(const Value& value) { return !value.is_number() && !says_something(value); }

bool is_medium_of_part(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"image_url", "input_image", "video_url", "audio_url", "input_audio", "file"});
  return is_of_other_media(name) || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_read_by_templates(std::string_view name) {
  return std::find(kReadByTemplates.begin(), kReadByTemplates.end(), name) !=
         kReadByTemplates.end();
}

const LearningField* find_field(std::string_view name) {
  const auto* const at = std::find_if(kLearningFields.begin(), kLearningFields.end(),
                                      [&](const auto& field) { return field.name == name; });
  return at == kLearningFields.end() ? nullptr : at;
}

// The name under which a part has its text; empty: it has none.
std::string_view text_name_of(const Dict& part) {
  for (const std::string_view name : {"text", "content", "value"}) {
    const Value* text = part.find(name);
    if (text != nullptr && text->is(Value::Kind::text)) return name;
  }
  return "";
}

// Other parts are refused elsewhere.
bool is_text_part(const Value& part) {
  return part.is(Value::Kind::dict) && !text_name_of(part.as_dict()).empty();
}

// Reads the fields of one message.
class LearningReader {
 public:
  LearningReader(const RecordFields& fields, std::string_view role, size_t number)
      : fields_(fields), role_(role), number_(number) {}

  void take(const std::string& name, const Value& value) {
    if (value.is(Value::Kind::none) || fields_.is_ignored(name)) return;
    if (const LearningField* field = find_field(name)) return take_field(*field, value);
    if (is_read_by_templates(name)) return;
    if (role_ == "assistant" && says_something(value) &&
        std::find(kOtherCalls.begin(), kOtherCalls.end(), name) != kOtherCalls.end())
      refuse(name, "holds calls under a name that is not known; call it 'tool_calls'");
    if (is_label_of_record(name, value)) return;
    if (name == "refusal") return refuse_refusal(name, value);
    if (is_of_other_media(name) && says_something(value))
      refuse(name, "goes with the text, which is all that is read of a message");
    if (says_what_is_learned(name, value))
      refuse(name, "says what is to be learned, in a way that is not known here");
    if (!is_empty_value(value)) fields_.leave(name);
  }

  // A part of the content cannot be learned separately: its fields must agree with its message's.
  void take_part(const Dict& part) {
    LearningReader own(fields_, role_, number_);
    for (const auto& [key, value] : part.entries()) {
      const std::string& name = key.as_text();
      if (name == text_name_of(part) ||
          std::find(kReadOfParts.begin(), kReadOfParts.end(), name) != kReadOfParts.end())
        continue;
      if (is_medium_of_part(name) && says_something(value) && !fields_.is_ignored(name))
        refuse(name, "stands in a part of 'content' next to a text, which is all that is read");
      take_within(own, name, value, "a part of 'content'");
    }
  }

  // Nor has a call, which is an object with its function in it, or that alone.
  void take_call(const Dict& call) {
    LearningReader own(fields_, role_, number_);
    for (const auto& [key, value] : call.entries()) {
      const std::string& name = key.as_text();
      if (std::find(kReadOfCalls.begin(), kReadOfCalls.end(), name) == kReadOfCalls.end())
        take_within(own, name, value, "a call");
      else if (name == "function" && value.is(Value::Kind::dict))
        take_call(value.as_dict());
    }
  }

  const std::optional<OwnSay>& says_learned() const { return say_; }

 private:
  void take_within(LearningReader& own, const std::string& name, const Value& value,
                   std::string_view place) {
    own.take(name, value);
    if (is_read_by_templates(name) && !is_empty_value(value) && !fields_.is_ignored(name))
      fields_.leave(name);
    const std::optional<OwnSay>& says = own.says_learned();
    if (!says) return;
    // A part that is not learned is none of what another role's message has to learn.
    if (role_ != "assistant" && !says->is_learned && !say_)
      say_ = says;
    else if (says->is_learned != is_learned(role_ == "assistant"))
      refuse(name, fmt::format("stands in {} and says something else than the message, which is "
                               "learned whole or not at all; let it stand on the message",
                               place));
  }

  bool is_learned(bool otherwise) const { return say_ ? say_->is_learned : otherwise; }

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
    if (role_ != "assistant" && is_learned && !field.counts_for_all)
      return fields_.leave(fmt::format("{} of {} messages", field.name, role_));
    if (this->is_learned(is_learned) != is_learned)
      refuse(field.name, "disagrees with another field on whether the message is learned");
    say_ = {is_learned, std::string(field.name)};
  }

  const RecordFields& fields_;
  std::string_view role_;
  size_t number_;
  std::optional<OwnSay> say_;
};

}  // namespace

std::optional<OwnSay> says_learned(const RecordFields& fields, const jinja::Dict& message,
                                   std::string_view role, size_t number) {
  LearningReader reader(fields, role, number);
  for (const auto& [name, value] : message.entries()) reader.take(name.as_text(), value);
  const Value* content = message.find(std::string_view("content"));
  if (content != nullptr && content->is(Value::Kind::list))
    for (const Value& part : content->items())
      if (is_text_part(part)) reader.take_part(part.as_dict());
  const Value* calls = message.find(std::string_view("tool_calls"));
  if (calls != nullptr && calls->is(Value::Kind::list) && !fields.is_ignored("tool_calls"))
    for (const Value& call : calls->items())
      if (call.is(Value::Kind::dict)) reader.take_call(call.as_dict());
  return reader.says_learned();
}

bool say_the_same(const Message& one, const Message& other) {
  const auto has_all_of = [](const Message& has, const Message& wanted) {
    return std::ranges::all_of(wanted.fields().as_dict().entries(), [&](const auto& entry) {
      const std::string& name = entry.first.as_text();
      const Value* own = has.find(name);
      return find_field(name) != nullptr || (own != nullptr && jinja::equal(*own, entry.second));
    });
  };
  return has_all_of(one, other) && has_all_of(other, one);
}

void hear_copy(const RecordFields& fields, const char* copied, const Message& copy, size_t number,
               Message& message) {
  for (const auto& [key, value] : copy.fields().as_dict().entries()) {
    const std::string& name = key.as_text();
    const Value* own = message.find(name);
    const bool is_said = own != nullptr && jinja::equal(*own, value);
    if (is_said || find_field(name) != nullptr || !says_something(value)) continue;
    if (name != "thinking" && name != "content" && name != "tool_calls" &&
        !is_label_of_record(name, value))
      fields.leave(name);
  }
  if (!copy.own_say()) return;
  if (message.own_say() && message.own_say()->is_learned != copy.own_say()->is_learned)
    fields.fail(
        fmt::format("message {}: 'prompt' and its copy in '{}' disagree on whether it is learned "
                    "('{}' and '{}'); let both say the same",
                    number, copied, message.own_say()->field, copy.own_say()->field));
  message.hear(*copy.own_say());
}

}  // namespace snug::text
