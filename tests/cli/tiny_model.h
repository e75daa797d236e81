// A model folder of a few thousand weights with a byte-level tokenizer, and data for it.
#pragma once

#include <string>

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

inline constexpr const char* kTinyData =
    "{\"instruction\": \"Say a.\", \"input\": \"\", \"output\": \"a\"}\n"
    "{\"instruction\": \"Say b.\", \"input\": \"\", \"output\": \"b\"}\n"
    "{\"instruction\": \"Say c.\", \"input\": \"\", \"output\": \"c\"}\n";

}  // namespace snug::cli
