// The content of a record in either of two forms: a list of parts, some of which are the answer to
// learn, or a conversation, which a chat template turns into such a list. Plain values.
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

// Whether a message is learned according to its own record, and which field says so.
struct OwnSay {
  bool is_learned = true;
  std::string field{};
};

// One message of a conversation, with all fields of its record.
class Message {
 public:
  Message(std::string_view role, std::string content);
  // Requires a dictionary whose role, if present, is text. As in transformers, null fields are
  // dropped, and the assistant's thought is stored under both names, reasoning_content and
  // thinking.
  explicit Message(const jinja::Value& fields);

  const std::string& role() const;
  // The text, or the texts of the parts joined by line breaks; otherwise empty.
  std::string content() const;
  bool is_assistant() const { return role() == "assistant"; }
  bool has(std::string_view field) const;
  const jinja::Value& fields() const { return fields_; }
  const jinja::Value* find(std::string_view field) const;  // the field's value, or null
  // A copy of the message with another value in a field, or with another text, which becomes a part
  // if the message has parts.
  Message with(std::string_view field, jinja::Value value) const;
  Message with_content(std::string content) const;
  // Whether the message is learned; as long as nobody sets it, the assistant's are.
  bool is_learned() const { return is_learned_; }
  void set_learned(bool is_learned) { is_learned_ = is_learned; }
  // What the record itself says about that, which overrides the other settings; nullopt if it says
  // nothing.
  const std::optional<OwnSay>& own_say() const { return own_say_; }
  void hear(OwnSay say) {
    is_learned_ = say.is_learned;
    own_say_ = std::move(say);
  }
  bool refuses_learning() const { return own_say_ && !own_say_->is_learned; }

 private:
  jinja::Value fields_;  // a dictionary
  bool is_learned_ = false;
  std::optional<OwnSay> own_say_{};
};

struct Conversation {
  std::vector<Message> messages{};
  jinja::Value tools = jinja::Value::none();  // the tools that may be called, or none
  std::vector<std::pair<std::string, jinja::Value>> variables{};  // for the template
};

// Renders a conversation with a chat template; throws UserError if the template refuses it.
using RenderChat = std::function<std::string(const Conversation&)>;

// A piece of a document before tokenization: a token given by its id, or text.
struct Part {
  std::string text;
  int32_t id = -1;  // -1: it is text
  bool is_answer = false;
};

}  // namespace snug::text
