// What a model's folder says about conversations: its chat templates, and the special tokens that
// templates may use by name, read as in transformers.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "text/record/json_node.h"

namespace snug::text {

struct ChatSettings {
  // Jinja sources by name; a template without a name is "default".
  std::map<std::string, std::string> templates{};
  bool has_named = false;    // templates have names, and are chosen by purpose
  std::string file{};        // where they come from, for messages
  bool is_adapters = false;  // they come from an adapter, while the model has others
  std::vector<std::pair<std::string, std::string>> tokens{};  // bos_token: "<s>", ...

  // The source for conversations with or without tools, or null if there is no template. Throws
  // UserError if templates have names and none of them fits.
  const std::string* find(bool has_tools) const;

  // Reads tokenizer_config.json: chat_template, a text or a list of named ones, and the tokens.
  void read_config(const JsonNode& config);
  // Reads special_tokens_map.json, which is used only if tokenizer_config.json has no
  // added_tokens_decoder.
  void read_token_map(const JsonNode& map);
  // Reads chat_template.jinja and additional_chat_templates/NAME.jinja, which take precedence over
  // tokenizer_config.json.
  void read_files(const std::string& folder);

  // Applies the settings of an adapter's folder, which take precedence.
  void override_by(const ChatSettings& adapter);

 private:
  void read_tokens(const JsonNode& config);
  void read_token(const std::string& name, const nlohmann::json& value);
  void set_token(const std::string& name, std::string token);
  bool declares_tokens_ = false;
};

}  // namespace snug::text
