// What a fuzz target is given, taken apart: choices first, then text or the bytes of a file.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "../base/temporary_folder.h"

namespace snug::fuzz {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : left_(reinterpret_cast<const char*>(data), size) {}

  // 0 where nothing is left.
  uint8_t byte() {
    if (left_.empty()) return 0;
    const auto value = static_cast<uint8_t>(left_.front());
    left_.remove_prefix(1);
    return value;
  }

  // Up to the next line break, in pieces that a sign separates; none of an empty line.
  std::vector<std::string> items(char separator) {
    std::string_view line = left_.substr(0, left_.find('\n'));
    left_.remove_prefix(std::min(line.size() + 1, left_.size()));
    std::vector<std::string> found;
    while (!line.empty()) {
      const std::string_view item = line.substr(0, line.find(separator));
      found.emplace_back(item);
      line.remove_prefix(std::min(item.size() + 1, line.size()));
    }
    return found;
  }

  std::string_view rest() const { return left_; }

 private:
  std::string_view left_;
};

// A file of a name, whose contents are replaced for each input.
inline std::string fuzzed_file(std::string_view name, std::string_view contents) {
  static const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder / name;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) std::abort();
  std::fwrite(contents.data(), 1, contents.size(), file);
  std::fclose(file);
  return path.string();
}

// Ends the target, as a crash does, where something does not hold of what was read.
inline void require(bool holds, std::string_view what) {
  if (holds) return;
  fmt::print(stderr, "does not hold: {}\n", what);
  std::abort();
}

// A UserError says which file it is about.
template <typename Action>
void read_or_refuse(std::string_view path, const Action& action) {
  try {
    action();
  } catch (const base::UserError& error) {
    require(std::string_view(error.what()).find(path) != std::string_view::npos, error.what());
  }
}

}  // namespace snug::fuzz
