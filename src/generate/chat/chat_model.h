// A model that is open for a chat: one sequence of at most `context` tokens. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "generate/chat/chat_partner.h"

namespace snug::generate {

class ChatModel : public ChatPartner {
 public:
  // `is_stopped` is asked between tokens; where it is true, the answer ends as it is. Throws
  // UserError; with exit code 3 where the context does not fit the budget.
  ChatModel(const formats::Recipe& recipe, std::function<bool()> is_stopped);
  ~ChatModel() override;

  bool takes_conversations() const override;
  ChatReply answer(const text::Conversation& conversation, const OnText& on_text) override;
  std::string why_no_system(const std::string& text) const override;
  void use_adapter(const std::string& folder) override;
  std::string adapter() const override { return chosen_.empty() ? recipe_.adapter : chosen_; }
  // The names of those that it can go on with at once.
  const std::vector<std::string>& adapters() const;
  int64_t context() const override;
  int64_t positions() const override;
  ChatMemory memory() const override;

 private:
  struct Opened;
  void open_again();
  engine::Request request_for(engine::Ids prompt);

  formats::Recipe recipe_;
  std::function<bool()> is_stopped_;
  std::unique_ptr<Opened> opened_;
  std::string chosen_;  // of recipe_.adapters; empty: none
  int64_t asked_ = 0;   // answers so far, so that each draws anew
};

}  // namespace snug::generate
