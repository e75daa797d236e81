// What a record says, whatever its form: a list of parts, of which some are the answer that the
// model is to learn, or a conversation, which a chat template turns into such a list. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat/jinja/values/value.h"

namespace snug::text {

// What a record says itself of whether a message is learned, and in which field.
struct OwnSay {
  bool is_learned = true;
  std::string field{};
};

// One message of a conversation, with everything that its record says of it.
class Message {
 public:
  Message(std::string_view role, std::string content);
  // Requires a dictionary whose role, if it has one, is text. As transformers hands messages to a
  // template: without the fields that are null, and what an assistant thought under the names
  // reasoning_content and thinking.
  explicit Message(const jinja::Value& fields);

  const std::string& role() const;
  std::string content() const;  // text, or that of parts, joined by line breaks; else empty
  bool is_assistant() const { return role() == "assistant"; }
  bool has(std::string_view field) const;
  const jinja::Value& fields() const { return fields_; }
  const jinja::Value* find(std::string_view field) const;  // or null
  // A copy of the message with another value in a field, or another text: as a part, where it has
  // parts.
  Message with(std::string_view field, jinja::Value value) const;
  Message with_content(std::string content) const;
  // Whether it is learned if it is the assistant's.
  bool is_learned() const { return is_learned_; }
  void set_learned(bool is_learned) { is_learned_ = is_learned; }
  // What its record says of that, which counts whatever else is learned; none: nothing.
  const std::optional<OwnSay>& own_say() const { return own_say_; }
  void hear(OwnSay say) {
    is_learned_ = say.is_learned;
    own_say_ = std::move(say);
  }
  bool refuses_learning() const { return own_say_ && !own_say_->is_learned; }

 private:
  jinja::Value fields_;  // a dictionary
  bool is_learned_ = true;
  std::optional<OwnSay> own_say_{};
};

struct Conversation {
  std::vector<Message> messages{};
  jinja::Value tools = jinja::Value::none();  // or a list of what the assistant may call
  std::vector<std::pair<std::string, jinja::Value>> variables{};  // more for the template
};

// What a chat template writes of a conversation; throws UserError where it refuses it.
using RenderChat = std::function<std::string(const Conversation&)>;

// A span of a document before it is tokenized: a token by its id, or text.
struct Part {
  std::string text;
  int32_t id = -1;  // -1: text
  bool is_answer = false;
};

}  // namespace snug::text
