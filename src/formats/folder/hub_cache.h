// The local cache of the Hugging Face hub, to which `hf download` and transformers download:
//   CACHE/models--ORG--NAME/refs/REVISION      the commit that a branch or tag stands for
//   CACHE/models--ORG--NAME/snapshots/COMMIT/  its files
// CACHE is HF_HUB_CACHE, or else HF_HOME/hub, or else ~/.cache/huggingface/hub. Snug only reads it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace snug::formats {

// "org/name" or "org/name@revision", where the revision is a branch, a tag or a full commit hash.
struct HubName {
  std::string organisation;
  std::string name;
  std::string revision = "main";

  std::string repository() const { return organisation + "/" + name; }
  // The command that downloads it into the cache.
  std::string download_command() const;
};

// Nothing if no repository of the hub can have this name.
std::optional<HubName> parse_hub_name(std::string_view word);

std::filesystem::path hub_cache_folder();

// The folder with its files, or nothing if the cache does not have this revision.
std::optional<std::filesystem::path> find_in_hub_cache(const HubName& name);

}  // namespace snug::formats
