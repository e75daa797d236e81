#include "train/files_fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/checksum.h"
#include "formats/tensor_index.h"

namespace snug::train {
namespace {

constexpr int64_t kSampleBytes = 4096;

}  // namespace

std::string files_fingerprint(const std::filesystem::path& folder, const std::string& stem) {
  const formats::TensorIndex index(folder, stem);
  base::ChecksumStream stream;
  std::array<char, kSampleBytes> sample{};
  for (const formats::IndexedTensor& tensor : index.tensors()) {
    const std::string text = fmt::format("{} {} {}\n", tensor.info->name, tensor.info->stored_dtype,
                                         formats::shape_text(tensor.info->shape));
    stream.add(text.data(), std::ssize(text));
    const int64_t bytes = std::min(kSampleBytes, tensor.info->bytes());
    index.read_range(tensor, 0, bytes, sample.data());
    stream.add(sample.data(), bytes);
  }
  return base::checksum_text(stream.value());
}

}  // namespace snug::train
