// Where the beginnings of a long conversation end in its text, for a template that writes each as a
// beginning of that text. To render every one of them takes the square of the conversation's
// length. Here a stretch of messages is rendered after the first few of the conversation, in place
// of all that stands before it: what it adds to them is what it adds to the text, wherever that
// has it word for word. Where it has not, nothing is said.
// One conversation, one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "text/chat/conversation.h"

namespace snug::text {

class Beginnings {
 public:
  // Throws UserError where the template refuses the conversation.
  using Render = std::function<std::string(const Conversation&, bool for_generation)>;

  // `whole` is what the conversation renders to. Both must outlive it.
  Beginnings(const Conversation& conversation, std::string_view whole, Render render);

  // Where the text of the first so many messages ends, and where what the prompt for generation
  // adds to them does, which stands there as well. From one call to the next they only grow.
  std::optional<size_t> end_of(size_t messages);
  std::optional<size_t> end_of_prompt(size_t messages);

 private:
  std::optional<std::string> render(size_t messages, bool for_generation) const;
  std::optional<size_t> head_before(size_t message) const;
  std::optional<size_t> next_border(size_t from) const;
  std::optional<size_t> end_of_stretch();
  void go_to(size_t messages);
  bool stands_at(size_t at, std::string_view text) const {
    return whole_.substr(at, text.size()) == text;
  }

  const Conversation& conversation_;
  std::string_view whole_;
  Render render_;
  bool is_lost_ = false;
  size_t taken_whole_ = 0;  // beginnings that were rendered whole where no stretch told their end
  // The stretch: messages [first_, last_), rendered after the first `head_`, whose text is
  // `head_text_`; they begin at `begin_` of the whole.
  size_t head_ = 0;
  size_t first_ = 0;
  size_t last_ = 0;
  size_t begin_ = 0;
  std::string head_text_;
  size_t known_ = 0;  // messages of the beginning that was rendered last
  std::string text_;  // and what it renders to, in its stretch
};

}  // namespace snug::text
