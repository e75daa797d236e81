#include "train/files_fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/checksum.h"
#include "base/random.h"
#include "formats/folder/tensor_index.h"

namespace snug::train {
namespace {

constexpr int64_t kBlockBytes = 4096;
// The blocks that are read of each tensor next to its first and its last.
constexpr uint32_t kBlocksBetween = 4;
constexpr base::PhiloxKey kSeed = {0x5e7f00d5U, 0xb10c5U};

// Where the blocks of a tensor begin that are looked at, in order: the same for tensors of one
// name.
std::vector<int64_t> blocks_of(const formats::TensorInfo& tensor) {
  const int64_t blocks = (tensor.bytes() + kBlockBytes - 1) / kBlockBytes;
  if (blocks == 0) return {};
  std::vector<int64_t> chosen{0, blocks - 1};
  const uint64_t name = base::hash_name(tensor.name.data(), tensor.name.size());
  for (uint32_t i = 0; i < kBlocksBetween; ++i) {
    const base::PhiloxCounter words =
        base::philox({static_cast<uint32_t>(name), static_cast<uint32_t>(name >> 32), i, 0}, kSeed);
    const uint64_t word = uint64_t{words[0]} << 32 | words[1];
    chosen.push_back(static_cast<int64_t>(word % static_cast<uint64_t>(blocks)));
  }
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  for (int64_t& block : chosen) block *= kBlockBytes;
  return chosen;
}

}  // namespace

std::string files_fingerprint(const std::filesystem::path& folder, const std::string& stem) {
  const formats::TensorIndex index(folder, stem);
  base::ChecksumStream stream;
  std::array<char, kBlockBytes> block{};
  for (const formats::SafetensorsFile& file : index.files()) {
    const std::string text = fmt::format("{} bytes\n", std::filesystem::file_size(file.path()));
    stream.add(text.data(), std::ssize(text));
  }
  for (const formats::IndexedTensor& tensor : index.tensors()) {
    const std::string text = fmt::format("{} {} {}\n", tensor.info->name, tensor.info->stored_dtype,
                                         formats::shape_text(tensor.info->shape));
    stream.add(text.data(), std::ssize(text));
    for (const int64_t begin : blocks_of(*tensor.info)) {
      const int64_t bytes = std::min(kBlockBytes, tensor.info->bytes() - begin);
      index.read_range(tensor, begin, bytes, block.data());
      stream.add(block.data(), bytes);
    }
  }
  return base::checksum_text(stream.value());
}

}  // namespace snug::train
