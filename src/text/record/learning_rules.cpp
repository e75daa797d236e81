#include "text/record/learning_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "text/record/message_role.h"

namespace snug::text {
namespace {

bool is_of_user(const Message& message) { return message.role() == "user"; }

// The first message of the turns that are learned.
size_t first_learned(const LearningRules& rules, const std::vector<Message>& messages) {
  size_t first = messages.size();
  while (first > 0 && !rules.learns(messages[first - 1])) --first;
  if (rules.turns == base::LearnedTurns::all || first == 0) return 0;
  --first;
  if (rules.turns == base::LearnedTurns::last_message) return first;
  while (first > 0 && !is_of_user(messages[first])) --first;
  while (first > 0 && is_of_user(messages[first - 1])) --first;
  return first;
}

}  // namespace

bool LearningRules::learns(const Message& message) const {
  return std::ranges::find(roles, message.role()) != roles.end();
}

bool LearningRules::are_usual() const {
  return roles == LearningRules().roles && turns == base::LearnedTurns::all;
}

LearningRules learning_rules(const std::vector<std::string>& roles, base::LearnedTurns turns) {
  LearningRules rules{.roles = {}, .turns = turns};
  for (const std::string& name : roles) {
    if (name == "none" && roles.size() == 1) return rules;
    const auto role = known_role(name);
    if (!role)
      base::throw_user_error("is '{}', which is no role; expected some of {}, or none alone", name,
                             known_role_names());
    if (std::ranges::find(rules.roles, *role) == rules.roles.end()) rules.roles.push_back(*role);
  }
  return rules;
}

void choose_learned(const LearningRules& rules, std::vector<Message>& messages) {
  const size_t first = first_learned(rules, messages);
  for (size_t i = 0; i < messages.size(); ++i) {
    Message& message = messages[i];
    if (message.own_say()) continue;
    message.set_learned(message.is_learned() && i >= first && rules.learns(message));
  }
}

std::string why_nothing_is_learned(const LearningRules& rules,
                                   const std::vector<Message>& messages) {
  const bool has_any =
      std::ranges::any_of(messages, [&](const Message& message) { return rules.learns(message); });
  if (rules.are_usual())
    return has_any ? "its messages say of each of the assistant's that it is not to be learned"
                   : "no message is the assistant's, so there is nothing to learn from it";
  if (has_any)
    return "its messages of the roles and turns that are learned say that they are not to be, or "
           "are empty";
  return fmt::format(
      "no message is of a role that is learned (roles_to_train is [{}]), and none says itself that "
      "it is",
      fmt::join(rules.roles, ", "));
}

}  // namespace snug::text
