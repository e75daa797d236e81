// The key-value pairs at the beginning of a GGUF file, in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace snug::formats {

// A value by its type in the file. A reader widens integers of 8 and 16 bits; a writer writes each
// type as it is here.
using MetadataValue = std::variant<uint32_t, int32_t, uint64_t, int64_t, float, double, bool,
                                   std::string, std::vector<int32_t>, std::vector<uint32_t>,
                                   std::vector<float>, std::vector<bool>, std::vector<std::string>>;

class Metadata {
 public:
  // Adds a pair, or replaces the value of a key that is there.
  void set(std::string key, MetadataValue value);

  // nullptr if there is no such key.
  const MetadataValue* find(std::string_view key) const;
  const std::vector<std::pair<std::string, MetadataValue>>& pairs() const { return pairs_; }

 private:
  std::vector<std::pair<std::string, MetadataValue>> pairs_;
};

}  // namespace snug::formats
