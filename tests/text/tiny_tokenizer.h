// A byte-level tokenizer made on the spot: 256 byte tokens (id = byte), a few merges, then added
// tokens. Nothing else is needed to run the tests that use it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer/steps/byte_alphabet.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

struct TinyTokenizer {
  std::vector<std::pair<std::string, std::string>> merges;  // bytes; their ids begin at 256
  std::vector<std::string> added = {"<s>", "</s>"};         // special; ids follow the merges
  nlohmann::json keys = nlohmann::json::object();           // replace keys of the document
  nlohmann::json config = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};

  nlohmann::json document() const {
    nlohmann::json vocab;
    nlohmann::json pairs = nlohmann::json::array();
    for (int byte = 0; byte < 256; ++byte)
      vocab[characters(std::string(1, static_cast<char>(byte)))] = byte;
    int next = 256;
    for (const auto& [left, right] : merges) {
      vocab[characters(left + right)] = next++;
      pairs.push_back({characters(left), characters(right)});
    }
    nlohmann::json tokens = nlohmann::json::array();
    for (const std::string& token : added)
      tokens.push_back({{"id", next++},
                        {"content", token},
                        {"single_word", false},
                        {"lstrip", false},
                        {"rstrip", false},
                        {"normalized", false},
                        {"special", true}});
    nlohmann::json result = {{"version", "1.0"},
                             {"truncation", nullptr},
                             {"padding", nullptr},
                             {"added_tokens", tokens},
                             {"normalizer", nullptr},
                             {"pre_tokenizer", byte_level()},
                             {"post_processor", nullptr},
                             {"decoder", byte_level()},
                             {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", pairs}}}};
    for (const auto& item : keys.items()) result[item.key()] = item.value();
    return result;
  }

  Tokenizer make(int64_t rows = Tokenizer::kAnyRows) const {
    return Tokenizer::from_text(document().dump(), config.dump(), "tiny/tokenizer.json", rows);
  }

  static nlohmann::json byte_level() {
    return {{"type", "ByteLevel"},
            {"add_prefix_space", false},
            {"trim_offsets", true},
            {"use_regex", true}};
  }

  // Puts <s> before a text, as Llama's tokenizers do.
  static nlohmann::json bos_template(int bos) {
    return {{"type", "TemplateProcessing"},
            {"single",
             {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
            {"pair", nlohmann::json::array()},
            {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {bos}}, {"tokens", {"<s>"}}}}}}};
  }

  static std::string characters(const std::string& bytes) {
    std::string text;
    append_byte_characters(text, bytes);
    return text;
  }
};

// The message of the UserError that `action` throws, or "" where it throws none.
template <typename Error, typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace snug::text
