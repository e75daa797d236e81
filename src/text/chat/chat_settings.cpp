#include "text/chat/chat_settings.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "text/chat/jinja/limits.h"

namespace snug::text {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 7> kTokens{"bos_token", "eos_token", "unk_token", "sep_token",
                                             "pad_token", "cls_token", "mask_token"};

std::string read_source(const fs::path& path) {
  return base::read_text_file(path, static_cast<int64_t>(jinja::kMaxSourceBytes));
}

}  // namespace

const std::string* ChatSettings::find(bool has_tools) const {
  if (templates.empty()) return nullptr;
  const auto for_tools = templates.find("tool_use");
  if (has_named && has_tools && for_tools != templates.end()) return &for_tools->second;
  const auto usual = templates.find("default");
  if (usual != templates.end()) return &usual->second;
  std::string names;
  for (const auto& entry : templates) names += (names.empty() ? "" : ", ") + entry.first;
  throw base::UserError(
      fmt::format("the chat templates are named {}, and none of them default; choose one with "
                  "chat_template=FILE",
                  names),
      {file, 0, 0});
}

void ChatSettings::read_config(const JsonNode& config) {
  declares_tokens_ = config.has("added_tokens_decoder");
  read_tokens(config);
  if (!config.has("chat_template")) return;
  file = config.file();
  if (config.value().at("chat_template").is_string()) {
    templates["default"] = config.string("chat_template");
    return;
  }
  has_named = true;
  for (const JsonNode& item : config.array("chat_template"))
    templates[item.string("name")] = item.string("template");
}

void ChatSettings::read_token_map(const JsonNode& map) {
  if (!declares_tokens_) read_tokens(map);
}

void ChatSettings::read_tokens(const JsonNode& config) {
  for (const char* name : kTokens)
    if (config.has(name)) read_token(name, config.value().at(name));
  // A list contains tokens; an object maps names that templates use to tokens.
  if (!config.has("extra_special_tokens")) return;
  const nlohmann::json& extra = config.value().at("extra_special_tokens");
  if (!extra.is_object()) return;
  for (const auto& item : extra.items()) read_token(item.key(), item.value());
}

void ChatSettings::read_token(const std::string& name, const nlohmann::json& value) {
  if (value.is_string())
    set_token(name, value.get<std::string>());
  else if (value.is_object() && value.contains("content") && value["content"].is_string())
    set_token(name, value["content"].get<std::string>());
}

void ChatSettings::set_token(const std::string& name, std::string token) {
  const auto at = std::find_if(tokens.begin(), tokens.end(),
                               [&](const auto& entry) { return entry.first == name; });
  if (at == tokens.end())
    tokens.emplace_back(name, std::move(token));
  else
    at->second = std::move(token);
}

void ChatSettings::override_by(const ChatSettings& adapter) {
  for (const auto& [name, token] : adapter.tokens) set_token(name, token);
  if (adapter.templates.empty() || adapter.templates == templates) return;
  templates = adapter.templates;
  has_named = adapter.has_named;
  file = adapter.file;
  is_adapters = true;
}

void ChatSettings::read_files(const std::string& folder) {
  const fs::path usual = fs::path(folder) / "chat_template.jinja";
  const fs::path more = fs::path(folder) / "additional_chat_templates";
  std::error_code error;
  std::map<std::string, std::string> found;
  if (fs::is_regular_file(usual, error)) {
    file = usual.string();
    found["default"] = read_source(usual);
  }
  for (fs::directory_iterator at(more, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".jinja") continue;
    if (found.empty()) file = more.string();
    found[at->path().stem().string()] = read_source(at->path());
  }
  if (found.empty()) return;
  has_named = found.size() > 1 || !found.contains("default");
  templates = std::move(found);
}

}  // namespace snug::text
