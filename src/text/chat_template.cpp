#include "text/chat_template.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace snug::text {
namespace {

using Role = Message::Role;

constexpr std::array<std::string_view, 6> kNames{"chatml", "llama-3", "llama-2",
                                                 "zephyr", "phi-3",   "plain"};
constexpr const char* kChoices = "chatml, llama-3, llama-2, zephyr, phi-3 and plain";
constexpr int64_t kMaxTemplateBytes = 1 << 20;

std::string_view name_of(Role role) {
  switch (role) {
    case Role::system:
      return "system";
    case Role::user:
      return "user";
    case Role::assistant:
      return "assistant";
  }
  return "";
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

// A template by the markers in its source, or empty.
std::string_view recognise_source(std::string_view source) {
  const auto has = [&](std::string_view marker) {
    return source.find(marker) != std::string_view::npos;
  };
  if (has("<|im_start|>")) return "chatml";
  if (has("<|start_header_id|>")) return "llama-3";
  if (has("[INST]") && has("<<SYS>>")) return "llama-2";
  if (has("<|user|>") && has("<|end|>")) return "phi-3";
  if (has("<|user|>") && has("eos_token")) return "zephyr";
  return "";
}

// Without a template, by the tokens that only one of them needs.
std::string_view recognise_tokens(const Tokenizer& tokenizer) {
  if (tokenizer.id_of("<|im_start|>") && tokenizer.id_of("<|im_end|>")) return "chatml";
  if (tokenizer.id_of("<|start_header_id|>") && tokenizer.id_of("<|eot_id|>")) return "llama-3";
  if (tokenizer.id_of("<|user|>") && tokenizer.id_of("<|end|>")) return "phi-3";
  return "";
}

std::string_view recognise_file(const std::string& path) {
  const std::string_view found = recognise_source(base::read_text_file(path, kMaxTemplateBytes));
  if (found.empty())
    base::throw_user_error(
        "chat_template {}: this file's template is none of those built in; choose one of {}", path,
        kChoices);
  return found;
}

std::string_view recognise(const Tokenizer& tokenizer) {
  const bool has_source = !tokenizer.chat_template().empty();
  const std::string_view found =
      has_source ? recognise_source(tokenizer.chat_template()) : recognise_tokens(tokenizer);
  if (found.empty())
    base::throw_user_error(
        "the data holds conversations, but the model folder's {}; choose a template with "
        "chat_template= one of {}",
        has_source ? "chat template is none of those built in" : "tokenizer has no chat template",
        kChoices);
  return found;
}

void put_text(std::vector<Part>& parts, std::string text, bool is_answer = false) {
  parts.push_back({std::move(text), -1, is_answer});
}

void put_id(std::vector<Part>& parts, int32_t id, bool is_answer) {
  parts.push_back({"", id, is_answer});
}

}  // namespace

bool is_chat_template_name(std::string_view word) {
  return std::find(kNames.begin(), kNames.end(), word) != kNames.end();
}

std::string find_chat_template(std::string_view name) {
  if (name.empty()) return "";
  if (is_chat_template_name(name)) return std::string(name);
  const std::string path(name);
  if (std::filesystem::is_regular_file(path)) return std::string(recognise_file(path));
  base::throw_user_error(
      "chat_template '{}' is not known; the choices are {}, or a file that holds such a template",
      name, kChoices);
}

ChatTemplate::ChatTemplate(std::string_view name, const Tokenizer& tokenizer)
    : tokenizer_(tokenizer),
      name_(name.empty() ? std::string(recognise(tokenizer)) : find_chat_template(name)) {
  if (name_ == "chatml") {
    need("<|im_start|>");
    need("<|im_end|>");
    renderer_ = &ChatTemplate::chatml;
  } else if (name_ == "llama-3") {
    for (const char* token :
         {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"})
      need(token);
    renderer_ = &ChatTemplate::llama_3;
  } else if (name_ == "llama-2") {
    if (!tokenizer.bos_id())
      base::throw_user_error("chat_template llama-2 needs a BOS token, which the tokenizer lacks");
    need_eos();
    renderer_ = &ChatTemplate::llama_2;
  } else if (name_ == "zephyr") {
    need_eos();
    renderer_ = &ChatTemplate::zephyr;
  } else if (name_ == "phi-3") {
    for (const char* token : {"<|user|>", "<|assistant|>", "<|end|>"}) need(token);
    need_eos();
    renderer_ = &ChatTemplate::phi_3;
  } else {
    SNUG_CHECK_EQ(name_, std::string("plain"));
    need_eos();
    renderer_ = &ChatTemplate::plain;
  }
}

int32_t ChatTemplate::need(std::string_view token) const {
  const auto id = tokenizer_.id_of(token);
  if (!id)
    base::throw_user_error(
        "chat_template {} needs the token {}, which the tokenizer lacks; choose chat_template="
        "plain, or a model whose tokenizer has it",
        name_, token);
  return *id;
}

int32_t ChatTemplate::need_eos() const {
  const auto id = tokenizer_.eos_id();
  if (!id)
    base::throw_user_error(
        "chat_template {} needs an EOS token, which the tokenizer lacks; set eos_token in "
        "tokenizer_config.json",
        name_);
  return *id;
}

std::vector<Part> ChatTemplate::render(std::span<const Message> messages,
                                       bool for_generation) const {
  return (this->*renderer_)(messages, for_generation);
}

std::vector<Part> ChatTemplate::chatml(std::span<const Message> messages,
                                       bool for_generation) const {
  std::vector<Part> parts;
  for (const Message& message : messages) {
    const bool is_answer = message.role == Role::assistant;
    put_text(parts, fmt::format("<|im_start|>{}\n", name_of(message.role)));
    put_text(parts, message.content + "<|im_end|>", is_answer);
    put_text(parts, "\n");
  }
  if (for_generation) put_text(parts, "<|im_start|>assistant\n");
  return parts;
}

std::vector<Part> ChatTemplate::llama_3(std::span<const Message> messages,
                                        bool for_generation) const {
  std::vector<Part> parts;
  put_text(parts, "<|begin_of_text|>");
  for (const Message& message : messages) {
    const bool is_answer = message.role == Role::assistant;
    put_text(parts,
             fmt::format("<|start_header_id|>{}<|end_header_id|>\n\n", name_of(message.role)));
    put_text(parts, trimmed(message.content) + "<|eot_id|>", is_answer);
  }
  if (for_generation) put_text(parts, "<|start_header_id|>assistant<|end_header_id|>\n\n");
  return parts;
}

std::vector<Part> ChatTemplate::llama_2(std::span<const Message> messages,
                                        bool /*for_generation*/) const {
  std::vector<Part> parts;
  std::string system;
  bool user_is_next = true;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (message.role == Role::system && i == 0) {
      system = fmt::format("<<SYS>>\n{}\n<</SYS>>\n\n", message.content);
      continue;
    }
    if (message.role != (user_is_next ? Role::user : Role::assistant))
      base::throw_user_error(
          "message {}: chat_template llama-2 needs user and assistant in turn, with the system "
          "message first",
          i + 1);
    if (user_is_next) {
      put_id(parts, *tokenizer_.bos_id(), false);
      put_text(parts, fmt::format("[INST] {} [/INST]", trimmed(system + message.content)));
      system.clear();
    } else {
      put_text(parts, fmt::format(" {} ", trimmed(message.content)), true);
      put_id(parts, need_eos(), true);
    }
    user_is_next = !user_is_next;
  }
  return parts;
}

std::vector<Part> ChatTemplate::zephyr(std::span<const Message> messages,
                                       bool for_generation) const {
  std::vector<Part> parts;
  for (const Message& message : messages) {
    const bool is_answer = message.role == Role::assistant;
    put_text(parts, fmt::format("<|{}|>\n", name_of(message.role)));
    put_text(parts, message.content, is_answer);
    put_id(parts, need_eos(), is_answer);
    put_text(parts, "\n");
  }
  if (for_generation) put_text(parts, "<|assistant|>\n");
  return parts;
}

std::vector<Part> ChatTemplate::phi_3(std::span<const Message> messages,
                                      bool for_generation) const {
  std::vector<Part> parts;
  for (const Message& message : messages) {
    const bool is_answer = message.role == Role::assistant;
    put_text(parts, fmt::format("<|{}|>\n", name_of(message.role)));
    put_text(parts, message.content + "<|end|>", is_answer);
    put_text(parts, "\n");
  }
  if (for_generation) {
    put_text(parts, "<|assistant|>\n");
  } else {
    put_id(parts, need_eos(), !messages.empty() && messages.back().role == Role::assistant);
  }
  return parts;
}

std::vector<Part> ChatTemplate::plain(std::span<const Message> messages,
                                      bool for_generation) const {
  std::vector<Part> parts;
  for (const Message& message : messages) {
    switch (message.role) {
      case Role::system:
        put_text(parts, message.content + "\n");
        break;
      case Role::user:
        put_text(parts, "User: " + message.content + "\n");
        break;
      case Role::assistant:
        put_text(parts, "Assistant: ");
        put_text(parts, message.content, true);
        put_id(parts, need_eos(), true);
        put_text(parts, "\n");
        break;
    }
  }
  if (for_generation) put_text(parts, "Assistant: ");
  return parts;
}

}  // namespace snug::text
