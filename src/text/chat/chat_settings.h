// What a model's folder says of conversations: its chat templates, and the special tokens that
// they may write by name, as transformers reads them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "text/record/json_node.h"

namespace snug::text {

struct ChatSettings {
  // Source in Jinja by name; one that has no name is "default".
  std::map<std::string, std::string> templates{};
  bool has_named = false;    // templates have names, so that one is chosen by what it is for
  std::string file{};        // that they come from, for messages
  bool is_adapters = false;  // they are those of an adapter, and the model has others
  std::vector<std::pair<std::string, std::string>> tokens{};  // bos_token: "<s>", ...

  // The source for conversations with tools or without, or null where there is no template. Throws
  // UserError where templates have names and none is meant for it.
  const std::string* find(bool has_tools) const;

  // Reads tokenizer_config.json: chat_template, a text or a list of named ones, and the tokens.
  void read_config(const JsonNode& config);
  // Reads special_tokens_map.json, which counts where tokenizer_config.json has no
  // added_tokens_decoder.
  void read_token_map(const JsonNode& map);
  // chat_template.jinja and additional_chat_templates/NAME.jinja count before
  // tokenizer_config.json.
  void read_files(const std::string& folder);

  // What an adapter's folder says counts before.
  void override_by(const ChatSettings& adapter);

 private:
  void read_tokens(const JsonNode& config);
  void read_token(const std::string& name, const nlohmann::json& value);
  void set_token(const std::string& name, std::string token);
  bool declares_tokens_ = false;
};

}  // namespace snug::text
