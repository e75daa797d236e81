// The key-value pairs at the beginning of a GGUF file, in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace snug::formats {

// A value by its type in the file. A reader widens integers of 8 and 16 bits, alone and in arrays;
// a writer writes each type as it is here; std::vector<uint8_t> is for writing alone.
using MetadataValue =
    std::variant<uint32_t, int32_t, uint64_t, int64_t, float, double, bool, std::string,
                 std::vector<int32_t>, std::vector<uint32_t>, std::vector<float>, std::vector<bool>,
                 std::vector<std::string>, std::vector<int64_t>, std::vector<uint64_t>,
                 std::vector<double>, std::vector<uint8_t>>;

class Metadata {
 public:
  // Adds a pair, or replaces the value of a key that is there.
  void set(std::string key, MetadataValue value);

  // nullptr if there is no such key.
  const MetadataValue* find(std::string_view key) const;
  const std::vector<std::pair<std::string, MetadataValue>>& pairs() const { return pairs_; }

 private:
  std::vector<std::pair<std::string, MetadataValue>> pairs_;
  std::unordered_map<std::string, size_t> by_key_;
};

}  // namespace snug::formats
