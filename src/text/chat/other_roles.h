// Where the texts of other roles than the assistant's stand in a rendered conversation. What is
// learned of such a message is its own text, and the token that ends its turn where that follows
// it. A template marks nothing of them, so it is asked: with another text in the message, what
// stands there changes, and nothing else does. Pure; any thread, if the given function allows that.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/chat/conversation.h"
#include "text/chat/jinja/template.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

class OtherRoles {
 public:
  using Span = jinja::Template::Span;

  // `ends`: the tokens with which turns end. All that is given must outlive it.
  OtherRoles(const Tokenizer& tokenizer, std::span<const int32_t> ends, const RenderChat& render)
      : tokenizer_(tokenizer), ends_(ends), render_(render) {}

  // Whether the conversation has such messages that are learned.
  static bool are_learned(const Conversation& conversation);

  // Their spans in `whole`, the rendered conversation, in its order; a message without a text has
  // none. Throws UserError where one cannot be told from the rest.
  std::vector<Span> find(const Conversation& conversation, const std::string& whole) const;

 private:
  Span find_one(const Conversation& conversation, const std::string& whole, size_t index) const;
  size_t with_end_of_turn(const std::string& whole, size_t end,
                          std::span<const TextSpan> added) const;

  const Tokenizer& tokenizer_;
  std::span<const int32_t> ends_;
  const RenderChat& render_;
};

// The spans of both in the order of the text. Throws UserError where two overlap.
std::vector<jinja::Template::Span> merged_spans(std::vector<jinja::Template::Span> some,
                                                std::span<const jinja::Template::Span> others);

}  // namespace snug::text
