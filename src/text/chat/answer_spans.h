// Where the assistant's texts lie in a conversation that a template rendered without marking them.
// The template is asked what it writes of the conversation's beginnings. For the assistant's
// message i, in a text T of all messages:
//
//   It begins where the generation prompt ends: what the messages before i render to, with the
//   prompt for generation, is the beginning of T. Where it is not, since the template writes more
//   after a prompt than before an answer (<think>), it begins where the two differ; where the
//   template writes older messages otherwise (a system message moved to the last question), it
//   begins where T agrees longest with the end of the prompt, before the answer's own text. Where
//   it does both (thoughts leave the history, and the prompt opens one), it begins after what the
//   prompt for generation begins with, where that follows the messages before. A conversation that
//   the assistant begins has what a user's message is followed by.
//   It ends where the messages up to i, rendered alone, end; or, since they end otherwise when they
//   are the last, where the two differ, or where T agrees longest with their end before the text of
//   message i + 1.
//   Of what was found the end of turn is the last: the first stop token of what both an answer and
//   a question end with, else the last stop token; white space after an added token is not learned.
//
// Of a conversation of many messages not every beginning is rendered (beginnings.h); some answers
// are then looked for in both ways, and where one of them differs, all are in the slower one.
//
// What cannot be found so is an error that names the message. Tokens are never cut.
// Immutable; any thread, if the function may be called from any.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/beginnings.h"
#include "text/chat/conversation.h"
#include "text/chat/jinja/template.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

class AnswerFinder {
 public:
  using Span = jinja::Template::Span;
  // Throws UserError where the template refuses the conversation.
  using Render = std::function<std::string(const Conversation&, bool for_generation)>;

  // Messages of a conversation all of whose beginnings are rendered.
  static constexpr size_t kMostRendered = 256;

  // The tokenizer must outlive it. `most_rendered` is for tests.
  AnswerFinder(const Tokenizer& tokenizer, Render render, size_t most_rendered = kMostRendered)
      : tokenizer_(tokenizer), render_(std::move(render)), most_rendered_(most_rendered) {}

  // `whole` is what the conversation renders to. Throws UserError.
  std::vector<Span> find(const Conversation& conversation, const std::string& whole) const;

 private:
  struct Search;
  struct Place {  // of what the end of a turn is looked for in
    size_t begin = 0;
    size_t end = 0;
    bool is_whole = false;  // the messages up to the answer, rendered alone, end there
    std::optional<std::string_view> before{};  // what the messages before it render to
  };

  std::optional<std::string> try_render(const Conversation& conversation, size_t messages,
                                        bool for_generation) const;
  std::optional<std::string> opening(const Conversation& conversation) const;
  std::string with_other_content(const Conversation& conversation, size_t index) const;
  size_t begin_of(const Search& search) const;
  std::optional<size_t> begin_after(const std::string& before, const std::string& opening,
                                    const Search& search, size_t limit) const;
  size_t end_of(const Search& search, size_t begin) const;
  Span find_one(const Conversation& conversation, const std::string& whole, size_t index,
                size_t from) const;
  std::optional<Span> between(Beginnings& beginnings, const Search& search,
                              std::span<const TextSpan> added) const;
  std::optional<std::vector<Span>> find_soon(const Conversation& conversation,
                                             const std::string& whole) const;
  size_t end_of_turn(const std::string& whole, const Place& place,
                     std::span<const TextSpan> added) const;
  size_t end_of_turn(const Search& search, size_t begin, size_t end, bool is_whole) const;
  size_t common_tokens(const std::string& left, const std::string& right) const;

  const Tokenizer& tokenizer_;
  Render render_;
  size_t most_rendered_;
};

}  // namespace snug::text
