// The information that a training run adds to the companion files of its result, so that everyone
// who opens the folder renders conversations, and ends answers, as in training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/folder/added_tokens.h"

namespace snug::formats {

struct TrainedChat {
  // The source of the chat template of the training; nothing if that was the folder's own, or there
  // was none.
  std::optional<std::string> chat_template{};
  std::vector<int32_t> stop_ids{};  // for generation_config.json; empty: unchanged
  std::vector<NewToken> added_tokens{};
};

// Writes into a folder that has its companion files already: the tokens that were added
// (added_tokens.h); chat_template.jinja, which replaces
// all other templates, and eos_token_id in generation_config.json, which is made from `base_config`
// (a config.json) if it does not exist. Everything else in these files is kept.
void write_trained_chat(const std::filesystem::path& folder,
                        const std::filesystem::path& base_config, const TrainedChat& chat);

}  // namespace snug::formats
