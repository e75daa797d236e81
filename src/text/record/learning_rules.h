// Which messages of a conversation are learned, as far as they do not say so themselves.
#pragma once

#include <string>
#include <vector>

#include "base/learned_turns.h"
#include "text/chat/conversation.h"

namespace snug::text {

struct LearningRules {
  std::vector<std::string> roles{"assistant"};  // as templates have them (message_role.h)
  base::LearnedTurns turns = base::LearnedTurns::all;

  bool learns(const Message& message) const;
  // Whether these are the rules that hold where nobody asks for others.
  bool are_usual() const;
};

// The rules of recipe keys: roles in any of the words of records, or "none" alone. Throws UserError
// for other words.
LearningRules learning_rules(const std::vector<std::string>& roles, base::LearnedTurns turns);

// Settles of each message whether it is learned: as it says itself, else where it stands in what is
// learned, is of a role of the rules and in one of their turns. A turn begins with a message of the
// user's, or several in a row; the last one is that in which the last message of these roles
// stands.
void choose_learned(const LearningRules& rules, std::vector<Message>& messages);

// What to say of messages of which none is learned.
std::string why_nothing_is_learned(const LearningRules& rules,
                                   const std::vector<Message>& messages);

}  // namespace snug::text
