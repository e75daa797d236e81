#include "text/chat/chat_template.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "text/chat/answer_ends.h"
#include "text/chat/answer_spans.h"
#include "text/chat/chat_forms.h"
#include "text/chat/chat_settings.h"
#include "text/chat/fitted_conversation.h"
#include "text/chat/jinja/allowance.h"
#include "text/chat/jinja/limits.h"
#include "text/chat/jinja/values/print.h"
#include "text/chat/learned_turns.h"
#include "text/chat/other_roles.h"

namespace snug::text {
namespace {

using jinja::Value;
using jinja::Variables;

std::string read_file(const std::string& path) {
  return base::read_text_file(path, static_cast<int64_t>(jinja::kMaxSourceBytes));
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

// Throws where the template takes the conversation once every message has a content.
void explain_missing_content(const Conversation& conversation, const RenderChat& render,
                             const base::UserError& error) {
  Conversation filled = conversation;
  size_t first = 0;
  for (size_t i = filled.messages.size(); i-- > 0;) {
    if (filled.messages[i].has("content")) continue;
    filled.messages[i] = filled.messages[i].with_content("");
    first = i + 1;
  }
  if (first == 0 || !try_render(filled, render)) return;
  base::throw_user_error(
      "{}. Message {} has no 'content' (it is null, or not there), and this template wants one in "
      "every message: give it \"content\": \"\", or choose another template with chat_template=",
      error.what(), first);
}

// axolotl's word for the model's own template, or where it has none, for the built-in one of this
// name; empty: it is no such word.
std::string_view fallback_in(std::string_view word) {
  constexpr std::string_view kPrefix = "tokenizer_default_fallback_";
  return word.starts_with(kPrefix) ? word.substr(kPrefix.size()) : std::string_view();
}

// As text of a template.
std::string quoted(const std::string& text) {
  return jinja::print_json(Value::text(text), {}).as_text();
}

}  // namespace

bool is_chat_template_name(std::string_view word) {
  return find_chat_form(word) != nullptr || find_chat_form(fallback_in(word)) != nullptr;
}

void check_chat_template(std::string_view word) {
  if (word.empty() || is_chat_template_name(word)) return;
  const std::string path(word);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    base::throw_user_error(
        "chat_template '{}' is not known; the choices are {}, or a file that holds a template in "
        "Jinja",
        word, chat_form_names());
  const jinja::Template must_be_one(read_file(path), path);
}

ChatTemplate::ChatTemplate(std::string_view asked, const Tokenizer& tokenizer)
    : tokenizer_(tokenizer), now_(std::time(nullptr)) {
  for (const auto& [name, token] : tokenizer.chat_settings().tokens)
    tokens_.emplace_back(name, Value::text(token));
  check_chat_template(asked);
  std::string_view word = asked;
  if (const std::string_view fallback = fallback_in(asked); !fallback.empty())
    word = tokenizer.chat_settings().find(false) != nullptr ? std::string_view() : fallback;
  name_ = word;
  if (word.empty()) {
    read_own();
    return;
  }
  const bool is_form = is_chat_template_name(word);
  if (is_form)
    choose_form(word);
  else
    source_ = read_file(name_);
  usual_ = std::make_unique<jinja::Template>(
      *source_, is_form ? fmt::format("chat_template {}", word) : name_);
  takes_parts_only_ = takes_parts_only(renderer(false));
}

void ChatTemplate::choose_form(std::string_view word) {
  const ChatForm& form = *find_chat_form(word);
  const auto lacks = [&](const std::string& what, const std::string& advice) {
    base::throw_user_error("chat_template {} needs {}, which the tokenizer lacks{}", word, what,
                           advice);
  };
  std::vector<std::string_view> missing;
  for (const std::string_view token : form.tokens)
    if (!tokenizer_.id_of(token)) missing.push_back(token);
  if (!missing.empty())
    lacks(fmt::format("the token{} {}", missing.size() == 1 ? "" : "s", fmt::join(missing, ", ")),
          fmt::format("; added_tokens=[{}] adds {} in training where the model has rows to spare, "
                      "and chat_template=plain needs none",
                      fmt::join(missing, ","), missing.size() == 1 ? "it" : "them"));
  if (form.needs_bos && !tokenizer_.bos_id()) lacks("a BOS token", "");
  if (form.needs_eos && !tokenizer_.eos_id())
    lacks("an EOS token", "; set eos_token in tokenizer_config.json");
  const auto text_of = [&](int32_t id) {
    return std::string(tokenizer_.token_of(id).value_or(""));
  };
  source_.emplace();
  // Any file of the folder may name these two, and others look into one only.
  const auto take = [&](const char* name, std::optional<int32_t> id) {
    if (!id) return;
    const bool is_named = std::ranges::any_of(tokens_, [&](const auto& token) {
      return token.first == name && token.second.as_text() == text_of(*id);
    });
    if (!is_named) *source_ += fmt::format("{{%- set {} = {} -%}}\n", name, quoted(text_of(*id)));
  };
  if (form.source.find("bos_token") != std::string_view::npos)
    take("bos_token", tokenizer_.bos_id());
  if (form.source.find("eos_token") != std::string_view::npos)
    take("eos_token", tokenizer_.eos_id());
  // A template brings all tokens itself.
  if (form.takes_tokens_before)
    for (const int32_t id : tokenizer_.ids_before())
      *source_ += fmt::format("{{{{- {} -}}}}\n", quoted(text_of(id)));
  *source_ += form.source;
}

void ChatTemplate::read_own() {
  const ChatSettings& settings = tokenizer_.chat_settings();
  name_ = settings.is_adapters ? "the adapter's own" : "the model's own";
  const std::string* usual = settings.find(false);
  if (usual == nullptr)
    base::throw_user_error(
        "a template writes conversations, but the model folder has no chat template "
        "(chat_template.jinja, or chat_template in tokenizer_config.json); choose a template with "
        "chat_template= one of {}, or a file that holds one",
        chat_form_names());
  usual_ = std::make_unique<jinja::Template>(*usual, settings.file);
  if (settings.is_adapters) source_ = *usual;
  const std::string* for_tools = settings.find(true);
  if (for_tools != usual) for_tools_ = std::make_unique<jinja::Template>(*for_tools, settings.file);
  takes_parts_only_ = takes_parts_only(renderer(false));
}

const jinja::Template& ChatTemplate::chosen(const Conversation& conversation) const {
  return for_tools_ && has_tools(conversation) ? *for_tools_ : *usual_;
}

ChatTemplate::Rendering ChatTemplate::run(const Conversation& conversation,
                                          bool for_generation) const {
  Variables variables = tokens_;
  set(variables, "documents", Value::none());
  for (const auto& [name, value] : conversation.variables) set(variables, name, value);
  jinja::List messages;
  for (const Message& message : conversation.messages) messages.push_back(message.fields());
  set(variables, "messages", Value::list(std::move(messages)));
  set(variables, "tools", conversation.tools);
  set(variables, "add_generation_prompt", Value::boolean(for_generation));
  return chosen(conversation).render(variables, now_);
}

// As run, of a conversation as a user gave it: what refuses it says which message it means.
ChatTemplate::Rendering ChatTemplate::run_whole(const Conversation& conversation,
                                                bool for_generation) const {
  try {
    return run(conversation, for_generation);
  } catch (const base::UserError& error) {
    if (!jinja::Allowance::is_spent())
      explain_missing_content(conversation, renderer(for_generation), error);
    throw;
  }
}

RenderChat ChatTemplate::renderer(bool for_generation) const {
  return [this, for_generation](const Conversation& conversation) {
    return run(conversation, for_generation).text;
  };
}

Conversation ChatTemplate::fitted(const Conversation& given, bool for_generation) const {
  return fitted_conversation(takes_parts_only_ ? with_texts_as_parts(given) : given,
                             renderer(for_generation));
}

std::vector<Part> ChatTemplate::render(const Conversation& given) const {
  const jinja::Allowance allowance;
  const Conversation conversation = fitted(given, false);
  Rendering whole = run_whole(conversation, false);
  if (!chosen(conversation).marks_generation()) {
    const AnswerFinder finder(tokenizer_, [&](const Conversation& other, bool for_generation) {
      return run(other, for_generation).text;
    });
    whole.generated = finder.find(conversation, whole.text);
  } else {
    whole.generated = learned_spans(conversation, whole,
                                    [&](const Conversation& other) { return run(other, false); });
  }
  if (OtherRoles::are_learned(conversation)) {
    std::vector<int32_t> ends = turn_ends();
    ends.insert(ends.end(), tokenizer_.stop_ids().begin(), tokenizer_.stop_ids().end());
    const RenderChat other = renderer(false);
    whole.generated =
        merged_spans(std::move(whole.generated),
                     OtherRoles(tokenizer_, ends, other).find(conversation, whole.text));
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
  const jinja::Allowance allowance;
  return run_whole(fitted(conversation, false), false).text;
}

std::string ChatTemplate::prompt(const Conversation& conversation) const {
  const jinja::Allowance allowance;
  return run_whole(fitted(conversation, true), true).text;
}

std::vector<int32_t> ChatTemplate::turn_ends() const {
  AnswerEnds ends;
  try {
    const std::vector<Part> parts = render({.messages = {{"user", "Q"}, {"assistant", "A"}}});
    ends.add(tokenize_parts(tokenizer_, parts, SpecialTokens::none), tokenizer_);
  } catch (const base::UserError&) {  // such as a template that wants tools
  }
  return ends.ids();
}

std::vector<Unwritten> ChatTemplate::unwritten(const Conversation& given,
                                               bool for_generation) const {
  const jinja::Allowance allowance;
  const Conversation conversation = fitted(given, for_generation);
  return find_unwritten(conversation, run_whole(conversation, for_generation).text,
                        renderer(for_generation));
}

}  // namespace snug::text
