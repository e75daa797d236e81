// A GGUF file in memory, to be written again with something changed.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf_file.h"
#include "formats/gguf/gguf_writer.h"

namespace snug::convert {

// A file like `from`, with other pairs and tensors.
struct GgufFileChanges {
  formats::Metadata metadata;
  std::vector<formats::GgufTensorSpec> tensors;
  std::vector<std::vector<std::byte>> data;

  explicit GgufFileChanges(const formats::GgufFile& from) : metadata(from.metadata()) {
    for (const formats::GgufTensorInfo& tensor : from.tensors()) {
      tensors.push_back({tensor.name, tensor.shape, tensor.type});
      data.emplace_back(static_cast<size_t>(tensor.bytes()));
      from.read_range(tensor, 0, data.back());
    }
  }
  size_t index_of(std::string_view name) const {
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].name == name) return i;
    ADD_FAILURE() << name;
    return 0;
  }
  void remove(std::string_view name) {
    const auto i = static_cast<std::ptrdiff_t>(index_of(name));
    tensors.erase(tensors.begin() + i);
    data.erase(data.begin() + i);
  }
  void add(const std::string& name, int64_t elements) {
    tensors.push_back({name, {elements}, formats::GgmlType::f32});
    data.emplace_back(static_cast<size_t>(4 * elements));
  }
  std::filesystem::path write(const std::filesystem::path& path) const {
    formats::GgufWriter writer(path, metadata, tensors);
    for (const auto& bytes : data) writer.write(bytes);
    writer.finish();
    return path;
  }
};

}  // namespace snug::convert
