// The local cache of the Hugging Face hub, to which `hf download`, transformers and datasets
// download:
//   CACHE/models--ORG--NAME/refs/REVISION      the commit that a branch or tag stands for
//   CACHE/models--ORG--NAME/snapshots/COMMIT/  its files
//   CACHE/datasets--ORG--NAME/...              the same for a data set
// CACHE is HF_HUB_CACHE, or else HF_HOME/hub, or else ~/.cache/huggingface/hub. Snug only reads it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

enum class HubKind { model, dataset };

// "org/name" or "org/name@revision", where the revision is a branch, a tag, a full commit hash, or
// one of those that the hub makes by itself ("refs/convert/parquet").
struct HubName {
  std::string organisation{};  // empty for an old data set that has none
  std::string name{};
  std::string revision = "main";
  HubKind kind = HubKind::model;

  std::string repository() const { return organisation.empty() ? name : organisation + "/" + name; }
  // The command that downloads it into the cache.
  std::string download_command() const;
};

// Nothing if no repository of the hub can have this name.
std::optional<HubName> parse_hub_name(std::string_view word, HubKind kind = HubKind::model);

std::filesystem::path hub_cache_folder();

// The folder with its files, or nothing if the cache does not have this revision.
std::optional<std::filesystem::path> find_in_hub_cache(const HubName& name);

// The revisions of it that the cache does have, commits without a branch or tag too.
std::vector<std::string> revisions_in_hub_cache(const HubName& name);

}  // namespace snug::formats
