// A model folder of a few thousand weights with a byte-level tokenizer, and data for it.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "../base/temporary_folder.h"
#include "../text/tiny_tokenizer.h"

namespace snug::cli {

inline constexpr const char* kTinyConfig = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32,
  "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 258, "max_position_embeddings": 256,
  "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "initializer_range": 0.02,
  "tie_word_embeddings": false, "hidden_act": "silu", "bos_token_id": 256, "eos_token_id": 257
})";

// config.json and the tokenizer's files, no weights: to train with init=random.
inline void write_tiny_shape(const testing::TemporaryFolder& folder, const std::string& name) {
  const text::TinyTokenizer tokenizer;
  folder.write(name + "/config.json", kTinyConfig);
  folder.write(name + "/tokenizer.json", tokenizer.document().dump());
  folder.write(name + "/tokenizer_config.json", tokenizer.config.dump());
}

// The words of a command line: these defaults, but those whose key is given, and what is given.
inline std::vector<std::string> with_defaults(std::vector<std::string> defaults,
                                              const std::string& given) {
  std::erase_if(defaults, [&](const std::string& word) {
    return (" " + given).find(" " + word.substr(0, word.find('=') + 1)) != std::string::npos;
  });
  std::istringstream stream(given);
  for (std::string word; stream >> word;) defaults.push_back(word);
  return defaults;
}

inline constexpr const char* kTinyData =
    "{\"instruction\": \"Say a.\", \"input\": \"\", \"output\": \"a\"}\n"
    "{\"instruction\": \"Say b.\", \"input\": \"\", \"output\": \"b\"}\n"
    "{\"instruction\": \"Say c.\", \"input\": \"\", \"output\": \"c\"}\n";

}  // namespace snug::cli
