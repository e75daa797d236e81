#include "formats/gguf/metadata.h"

namespace snug::formats {

void Metadata::set(std::string key, MetadataValue value) {
  const auto [place, is_new] = by_key_.emplace(key, pairs_.size());
  if (is_new)
    pairs_.emplace_back(std::move(key), std::move(value));
  else
    pairs_[place->second].second = std::move(value);
}

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto found = by_key_.find(std::string(key));
  return found == by_key_.end() ? nullptr : &pairs_[found->second].second;
}

}  // namespace snug::formats
