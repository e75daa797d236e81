// The local cache of the Hugging Face hub, where `hf download` and transformers put what they
// fetch:
//   CACHE/models--ORG--NAME/refs/REVISION      the commit that a branch or tag stands for
//   CACHE/models--ORG--NAME/snapshots/COMMIT/  its files
// CACHE is HF_HUB_CACHE, or hub in HF_HOME, or ~/.cache/huggingface/hub. Snug only reads it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace snug::formats {

// "org/name", or "org/name@revision": a branch, a tag or a whole commit.
struct HubName {
  std::string organisation;
  std::string name;
  std::string revision = "main";

  std::string repository() const { return organisation + "/" + name; }
  // The command that puts it into the cache.
  std::string download_command() const;
};

// Nothing for what no repository of the hub can be called.
std::optional<HubName> parse_hub_name(std::string_view word);

std::filesystem::path hub_cache_folder();

// The folder of its files, or nothing where the cache does not have this revision.
std::optional<std::filesystem::path> find_in_hub_cache(const HubName& name);

}  // namespace snug::formats
