// Who answers in a chat: an open model (chat_model.h), or what stands for one in tests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/request.h"
#include "text/chat/conversation.h"

namespace snug::generate {

struct ChatReply {
  bool fits = true;  // false: nothing was answered, since the prompt leaves no room in the context
  std::string problem{};  // why nothing was answered: the template refuses the conversation
  std::string text{};
  engine::Finish finish = engine::Finish::stop;
  int64_t prompt_tokens = 0;
  int64_t read_tokens = 0;  // of the prompt: the others are known from the turns before
  int64_t new_tokens = 0;
  double tokens_per_second = 0;  // of the new ones, the first left out; 0: there are too few
};

struct ChatMemory {
  int64_t planned_bytes = 0;
  int64_t measured_bytes = 0;  // 0: the system does not say
};

class ChatPartner {
 public:
  virtual ~ChatPartner() = default;

  // Whether it answers conversations. If not, it completes each text alone.
  virtual bool takes_conversations() const = 0;

  // Answers the last message, and passes the text on as it grows.
  using OnText = std::function<void(const std::string&)>;
  virtual ChatReply answer(const text::Conversation& conversation, const OnText& on_text) = 0;

  // Why this cannot be a system message; empty: it can.
  virtual std::string why_no_system(const std::string& text) const = 0;

  // Goes on with another adapter, a folder or one of those that are open by its name, or with none
  // for an empty name. Throws UserError where it cannot
  // be used; the former one is in use then.
  virtual void use_adapter(const std::string& folder) = 0;
  virtual std::string adapter() const = 0;

  virtual int64_t context() const = 0;    // tokens that a conversation may have
  virtual int64_t positions() const = 0;  // of the model, for which a context may be made
  virtual ChatMemory memory() const = 0;
};

}  // namespace snug::generate
