#include "text/chat_template.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "text/answer_spans.h"
#include "text/chat_forms.h"
#include "text/chat_settings.h"
#include "text/jinja/limits.h"
#include "text/learned_turns.h"

namespace snug::text {
namespace {

using jinja::Value;
using jinja::Variables;

jinja::Template read_file(const std::string& path) {
  const auto most = static_cast<int64_t>(jinja::kMaxSourceBytes);
  return {base::read_text_file(path, most), path};
}

bool has_tools(const Conversation& conversation) {
  return !conversation.tools.is(Value::Kind::none);
}

void set(Variables& variables, const std::string& name, Value value) {
  const auto at = std::find_if(variables.begin(), variables.end(),
                               [&](const auto& entry) { return entry.first == name; });
  if (at == variables.end())
    variables.emplace_back(name, std::move(value));
  else
    at->second = std::move(value);
}

}  // namespace

bool is_chat_template_name(std::string_view word) { return find_chat_form(word) != nullptr; }

void check_chat_template(std::string_view word) {
  if (word.empty() || is_chat_template_name(word)) return;
  const std::string path(word);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    base::throw_user_error(
        "chat_template '{}' is not known; the choices are {}, or a file that holds a template in "
        "Jinja",
        word, kChatForms);
  read_file(path);
}

ChatTemplate::ChatTemplate(std::string_view word, const Tokenizer& tokenizer)
    : tokenizer_(tokenizer), name_(word), now_(std::time(nullptr)) {
  for (const auto& [name, token] : tokenizer.chat_settings().tokens)
    tokens_.emplace_back(name, Value::text(token));
  check_chat_template(word);
  if (word.empty())
    read_own();
  else if (is_chat_template_name(word))
    choose_form(word);
  else
    usual_ = std::make_unique<jinja::Template>(read_file(name_));
}

void ChatTemplate::choose_form(std::string_view word) {
  const ChatForm& form = *find_chat_form(word);
  const auto lacks = [&](const std::string& what, const std::string& advice) {
    base::throw_user_error("chat_template {} needs {}, which the tokenizer lacks{}", word, what,
                           advice);
  };
  for (const std::string_view token : form.tokens)
    if (!tokenizer_.id_of(token))
      lacks(fmt::format("the token {}", token),
            "; choose chat_template=plain, or a model whose tokenizer has it");
  if (form.needs_bos && !tokenizer_.bos_id()) lacks("a BOS token", "");
  if (form.needs_eos && !tokenizer_.eos_id())
    lacks("an EOS token", "; set eos_token in tokenizer_config.json");
  // Any file of the folder may name these two.
  const auto take = [&](const char* name, std::optional<int32_t> id) {
    if (id) set(tokens_, name, Value::text(std::string(tokenizer_.token_of(*id).value_or(""))));
  };
  take("bos_token", tokenizer_.bos_id());
  take("eos_token", tokenizer_.eos_id());
  usual_ = std::make_unique<jinja::Template>(form.source, fmt::format("chat_template {}", word));
}

void ChatTemplate::read_own() {
  name_ = "the model's own";
  const ChatSettings& settings = tokenizer_.chat_settings();
  const std::string* usual = settings.find(false);
  if (usual == nullptr)
    base::throw_user_error(
        "the data holds conversations, but the model folder has no chat template "
        "(chat_template.jinja, or chat_template in tokenizer_config.json); choose a template with "
        "chat_template= one of {}, or a file that holds one",
        kChatForms);
  usual_ = std::make_unique<jinja::Template>(*usual, settings.file);
  const std::string* for_tools = settings.find(true);
  if (for_tools != usual) for_tools_ = std::make_unique<jinja::Template>(*for_tools, settings.file);
}

const jinja::Template& ChatTemplate::chosen(const Conversation& conversation) const {
  return for_tools_ && has_tools(conversation) ? *for_tools_ : *usual_;
}

ChatTemplate::Rendering ChatTemplate::run(const Conversation& conversation,
                                          bool for_generation) const {
  Variables variables = tokens_;
  for (const auto& [name, value] : conversation.variables) set(variables, name, value);
  jinja::List messages;
  for (const Message& message : conversation.messages) messages.push_back(message.fields());
  set(variables, "messages", Value::list(std::move(messages)));
  set(variables, "tools", conversation.tools);
  set(variables, "documents", Value::none());
  set(variables, "add_generation_prompt", Value::boolean(for_generation));
  return chosen(conversation).render(variables, now_);
}

std::vector<Part> ChatTemplate::render(const Conversation& conversation) const {
  Rendering whole = run(conversation, false);
  if (!chosen(conversation).marks_generation()) {
    const AnswerFinder finder(tokenizer_, [&](const Conversation& other, bool for_generation) {
      return run(other, for_generation).text;
    });
    whole.generated = finder.find(conversation, whole.text);
  } else {
    whole.generated = learned_spans(conversation, whole,
                                    [&](const Conversation& other) { return run(other, false); });
  }
  std::vector<Part> parts;
  size_t at = 0;
  for (const auto& [begin, end] : whole.generated) {
    parts.push_back({whole.text.substr(at, begin - at), -1, false});
    parts.push_back({whole.text.substr(begin, end - begin), -1, true});
    at = end;
  }
  parts.push_back({whole.text.substr(at), -1, false});
  return parts;
}

std::string ChatTemplate::text(const Conversation& conversation) const {
  return run(conversation, false).text;
}

std::string ChatTemplate::prompt(const Conversation& conversation) const {
  return run(conversation, true).text;
}

}  // namespace snug::text
