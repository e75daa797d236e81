// Stages: render conversations of marks with the folder's template, and cut the prompts at the
// marks; take from the pieces what stands around each message; and keep the result only if it
// writes the same prompts as the template for other conversations.
#include "convert/gguf/go_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "text/chat/chat_settings.h"
#include "text/chat/chat_template.h"

namespace snug::convert {
namespace {

using Messages = std::vector<GoMessage>;

constexpr std::array<const char*, 4> kMarks = {"MarkOne", "MarkTwo", "MarkThree", "MarkFour"};

std::string own_prompt(const text::ChatTemplate& own, const Messages& messages) {
  text::Conversation conversation;
  for (const GoMessage& message : messages)
    conversation.messages.emplace_back(message.role, message.content);
  return own.prompt(conversation);
}

// The text before, between and after the marks, in order; empty if one is missing or stands there
// twice.
std::vector<std::string> cut_at_marks(const std::string& text, size_t count) {
  std::vector<std::string> pieces;
  size_t begin = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view mark = kMarks[i];
    const size_t at = text.find(mark, begin);
    if (at == std::string::npos || text.find(mark) != at || text.rfind(mark) != at) return {};
    pieces.push_back(text.substr(begin, at - begin));
    begin = at + mark.size();
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

std::string common_end(const std::string& a, const std::string& b) {
  size_t size = 0;
  while (size < std::min(a.size(), b.size()) && a[a.size() - 1 - size] == b[b.size() - 1 - size])
    ++size;
  return a.substr(a.size() - size);
}

// Removes `end`, which `text` ends with.
std::string without_end(const std::string& text, const std::string& end) {
  return text.substr(0, text.size() - end.size());
}

std::optional<GoTemplate> derived(const text::ChatTemplate& own, const std::string& bos) {
  const auto plain = cut_at_marks(
      own_prompt(own, {{"user", kMarks[0]}, {"assistant", kMarks[1]}, {"user", kMarks[2]}}), 3);
  const auto with_system =
      cut_at_marks(own_prompt(own, {{"system", kMarks[0]}, {"user", kMarks[1]}}), 2);
  if (plain.empty() || with_system.empty()) return std::nullopt;
  const auto after_bos = [&](const std::string& text) {
    return text.starts_with(bos) ? text.substr(bos.size()) : text;
  };
  const std::string first = after_bos(plain[0]);
  GoTemplate result;
  result.before_user = common_end(first, plain[2]);
  if (result.before_user.ends_with(with_system[1])) result.before_user = with_system[1];
  result.without_system = without_end(first, result.before_user);
  result.after_answer = without_end(plain[2], result.before_user);
  result.before_answer = plain[1];
  result.before_next_answer = plain[3];
  result.before_system = after_bos(with_system[0]);
  // What of the end is written before each user's message stands with that message.
  const bool has_user = with_system[1].ends_with(result.before_user);
  result.before_user_after_system = has_user ? result.before_user : "";
  result.after_system = without_end(with_system[1], result.before_user_after_system);
  return result;
}

// Conversations other than those from which the form was derived.
const std::vector<Messages>& trial_conversations() {
  static const std::vector<Messages> kConversations = {
      {{"user", "Hello there"}},
      {{"system", "Be brief."}, {"user", "One?"}, {"assistant", "Two."}, {"user", "Three?"}},
      {{"user", "a"}, {"assistant", "b"}, {"user", "c"}, {"assistant", "d"}, {"user", "e\nf"}},
      {{"system", "Speak\nFrench."}, {"user", "\"Why\"?"}},
  };
  return kConversations;
}

bool writes_the_same(const GoTemplate& form, const text::ChatTemplate& own,
                     const std::string& bos) {
  return std::ranges::all_of(trial_conversations(), [&](const Messages& messages) {
    const std::string prompt = own_prompt(own, messages);
    const std::string text = form.prompt(messages);
    return prompt == text || prompt == bos + text;
  });
}

bool can_be_written(const GoTemplate& form) {
  const std::string all = form.without_system + form.before_system + form.after_system +
                          form.before_user + form.before_answer + form.after_answer +
                          form.before_next_answer;
  return all.find("{{") == std::string::npos && all.find("\"\"\"") == std::string::npos;
}

}  // namespace

std::string GoTemplate::prompt(const std::vector<GoMessage>& messages) const {
  const bool has_system = !messages.empty() && messages.front().role == "system";
  std::string text = has_system ? "" : without_system;
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, content] = messages[i];
    if (role == "system") {
      text += before_system + content + after_system;
    } else if (role == "assistant") {
      text += before_answer + content + after_answer;
    } else {
      text += i == 1 && has_system ? before_user_after_system : before_user;
      text += content;
    }
  }
  return text + before_next_answer;
}

std::string GoTemplate::source() const {
  const auto when = [](std::string_view condition, const std::string& text) {
    return fmt::format("{{{{ {} }}}}{}", condition, text);
  };
  const std::string content = "{{ .Content }}";
  std::string text;
  if (!without_system.empty()) text += when("if not .System", without_system) + "{{ end }}";
  // A variable remembers that the message before was the system's, where that changes a question.
  const bool has_variable = before_user_after_system != before_user;
  if (has_variable) text += "{{ $first := false }}";
  text += "{{ range .Messages }}" + when("if eq .Role \"system\"", before_system) + content +
          after_system;
  if (has_variable) text += "{{ $first = true }}";
  text += "{{ else if eq .Role \"user\" }}";
  if (has_variable)
    text += when("if $first", before_user_after_system) + "{{ $first = false }}" +
            when("else", before_user) + "{{ end }}";
  else
    text += before_user;
  text += content + when("else if eq .Role \"assistant\"", before_answer) + content + after_answer;
  return text + "{{ end }}{{ end }}" + before_next_answer;
}

std::optional<GoTemplate> go_template(const text::Tokenizer& tokenizer) {
  if (tokenizer.chat_settings().templates.empty()) return std::nullopt;
  try {
    const text::ChatTemplate own("", tokenizer);
    std::string bos;
    if (const auto before = tokenizer.ids_before(); before.size() == 1)
      bos = tokenizer.token_of(before[0]).value_or("");
    auto form = derived(own, bos);
    if (!form || !writes_the_same(*form, own, bos) || !can_be_written(*form)) return std::nullopt;
    return form;
  } catch (const base::UserError&) {
    return std::nullopt;  // the template refuses a system message, or is invalid
  }
}

}  // namespace snug::convert
