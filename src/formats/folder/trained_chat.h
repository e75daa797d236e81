// What a training run adds to the files that travel with its result, so that everyone who opens the
// folder renders conversations as they were trained and ends answers where they were.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace snug::formats {

struct TrainedChat {
  // The source of the chat template that was used; absent: the folder's own, or there was none.
  std::optional<std::string> chat_template{};
  std::vector<int32_t> stop_ids{};  // of generation_config.json; empty: as they are
};

// Writes into a folder that has its companion files already: chat_template.jinja, in place of all
// other templates; eos_token_id of generation_config.json, which is made of `base_config` (a
// config.json) where there is none. Keeps what else stands in these files.
void write_trained_chat(const std::filesystem::path& folder,
                        const std::filesystem::path& base_config, const TrainedChat& chat);

}  // namespace snug::formats
