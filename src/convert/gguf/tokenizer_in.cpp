#include "convert/gguf/tokenizer_in.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "convert/gguf/general_keys.h"
#include "convert/gguf/gguf_tokenizer.h"
#include "convert/gguf/known_ends.h"
#include "convert/gguf/missing_rule.h"
#include "convert/gguf/tokenizer_document.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::convert {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// The ids that a file means without naming them, as llama.cpp has them for each kind.
void complete_ids(GgufTokenizer& tokenizer) {
  const auto complete = [&](const char* name, int32_t id) {
    if (id < std::ssize(tokenizer.tokens)) tokenizer.ids.emplace(name, id);
  };
  if (tokenizer.kind == GgufTokenizerKind::sentencepiece && !tokenizer.lists_merges) {
    complete("unknown", 0);
    complete("bos", 1);
    complete("eos", 2);
  }
  if (tokenizer.kind == GgufTokenizerKind::unigram) {
    complete("padding", 0);
    complete("eos", 1);
    complete("unknown", 2);
  }
}

// EOS first, then the other ends of a turn that the file names, then those that llama.cpp knows by
// their text.
std::vector<int32_t> ends_of(const GgufTokenizer& tokenizer) {
  std::vector<int32_t> ends;
  const auto put = [&](int32_t id) {
    if (std::ranges::find(ends, id) == ends.end()) ends.push_back(id);
  };
  for (const char* name : {"eos", "eot", "eom"})
    if (const auto id = tokenizer.id(name)) put(*id);
  bool has_return = false;
  bool has_call = false;
  for (const GgufToken& token : tokenizer.tokens) {
    has_return |= token.text == "<|return|>";
    has_call |= token.text == "<|call|>";
  }
  for (size_t id = 0; id < tokenizer.tokens.size(); ++id) {
    const std::string& token = tokenizer.tokens[id].text;
    // With both of these tokens, this one ends a message and not the answer.
    if (has_return && has_call && token == "<|end|>") continue;
    if (is_known_end(token)) put(static_cast<int32_t>(id));
  }
  return ends;
}

// The length of a context that the model was trained with, if the file says it.
json context_length_of(const formats::Metadata& metadata) {
  const auto* name = metadata.find("general.architecture");
  const auto* architecture = name == nullptr ? nullptr : std::get_if<std::string>(name);
  if (architecture == nullptr) return nullptr;
  const auto* length = metadata.find(*architecture + ".context_length");
  if (length == nullptr) return nullptr;
  if (const auto* value = std::get_if<uint32_t>(length)) return *value;
  if (const auto* value = std::get_if<uint64_t>(length)) return *value;
  return nullptr;
}

json tokenizer_config_of(const GgufTokenizer& tokenizer, json context) {
  json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {"clean_up_tokenization_spaces", false}};
  if (!context.is_null()) config["model_max_length"] = std::move(context);
  const auto name = [&](const char* key, const char* id_name) {
    if (const auto id = tokenizer.id(id_name))
      config[key] = tokenizer.tokens[static_cast<size_t>(*id)].text;
  };
  name("bos_token", "bos");
  name("eos_token", "eos");
  name("unk_token", "unknown");
  name("pad_token", "padding");
  name("sep_token", "seperator");
  name("mask_token", "mask");
  return config;
}

json generation_config_of(const GgufTokenizer& tokenizer) {
  json generation = json::object();
  if (const auto id = tokenizer.id("bos")) generation["bos_token_id"] = *id;
  if (const auto id = tokenizer.id("padding")) generation["pad_token_id"] = *id;
  const std::vector<int32_t> ends = ends_of(tokenizer);
  if (ends.size() == 1) generation["eos_token_id"] = ends[0];
  if (ends.size() > 1) generation["eos_token_id"] = ends;
  return generation;
}

void name_rule(GgufTokenizer& tokenizer) {
  const std::string name = rule_by_ids(tokenizer);
  if (name.empty()) return;
  tokenizer.pre = name;
  base::say(
      "the file does not say how its tokenizer divides texts (tokenizer.ggml.pre); its ids "
      "are those of '{}', whose rule the folder has",
      name);
}

void write_json_file(const fs::path& path, const json& document) {
  base::write_file_atomically(path, document.dump(2) + "\n");
}

void write_templates(const GgufTokenizer& tokenizer, const fs::path& folder) {
  for (const auto& [name, source] : tokenizer.chat_templates) {
    if (name == "default") {
      base::write_file_atomically(folder / "chat_template.jinja", source);
      continue;
    }
    const bool is_plain = std::ranges::all_of(name, [](char c) {
      return c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
             (c >= 'A' && c <= 'Z');
    });
    if (!is_plain)
      base::throw_user_error(
          "tokenizer.chat_template.{}: the name of a template has only letters, digits, _ and -",
          name);
    fs::create_directories(folder / "additional_chat_templates");
    base::write_file_atomically(folder / "additional_chat_templates" / (name + ".jinja"), source);
  }
}

}  // namespace

void write_tokenizer(const formats::Metadata& metadata, const fs::path& folder) {
  GgufTokenizer tokenizer = read_tokenizer_keys(metadata);
  complete_ids(tokenizer);
  if (lacks_rule(tokenizer)) name_rule(tokenizer);
  const json document = tokenizer_document(tokenizer, true);
  const json config = tokenizer_config_of(tokenizer, context_length_of(metadata));
  const std::string text = document.dump(1);
  // What transformers could not read is refused before anything is written.
  text::Tokenizer::from_text(text, config.dump(), "the tokenizer of the GGUF file");
  base::write_file_atomically(folder / "tokenizer.json", text + "\n");
  write_json_file(folder / "tokenizer_config.json", config);
  json generation = generation_config_of(tokenizer);
  generation.update(sampling_settings(metadata));
  write_json_file(folder / "generation_config.json", generation);
  write_templates(tokenizer, folder);
}

}  // namespace snug::convert
