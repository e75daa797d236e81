// GGUF files, byte by byte: what is read can be written and read again, and the weights of a model
// can be read whole and in rows.
#include "convert/source/gguf_weights.h"
#include "formats/gguf/gguf_writer.h"
#include "fuzz_input.h"

namespace snug::fuzz {
namespace {

using formats::GgufFile;
using formats::GgufTensorInfo;

std::vector<std::byte> data_of(const GgufFile& file, const GgufTensorInfo& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes()));
  file.read_range(tensor, 0, bytes);
  return bytes;
}

void write_again(const GgufFile& file, const std::string& path) {
  formats::Metadata metadata;
  for (const auto& [key, value] : file.metadata().pairs())
    if (key != "general.alignment") metadata.set(key, value);
  std::vector<formats::GgufTensorSpec> specs;
  for (const GgufTensorInfo& tensor : file.tensors())
    specs.push_back({tensor.name, tensor.shape, tensor.type});
  formats::GgufWriter writer(path, metadata, specs);
  for (const GgufTensorInfo& tensor : file.tensors()) writer.write(data_of(file, tensor));
  writer.finish();
  const GgufFile again(path);
  require(again.metadata().pairs().size() == metadata.pairs().size(), "pairs are kept");
  for (const GgufTensorInfo& tensor : file.tensors()) {
    const GgufTensorInfo* found = again.find(tensor.name);
    require(found != nullptr && found->shape == tensor.shape && found->type == tensor.type,
            "tensors are kept");
    require(data_of(again, *found) == data_of(file, tensor), "data are kept");
  }
}

void read_weights(const std::string& path) {
  const convert::GgufWeights weights(path);
  for (const convert::SourceTensor& tensor : weights.tensors()) {
    std::vector<float> whole(static_cast<size_t>(tensor.elements()));
    weights.read(tensor, 0, tensor.rows(), whole);
    const auto width = static_cast<size_t>(tensor.row_elements());
    const int64_t last = tensor.rows() - 1;
    std::vector<float> row(width);
    if (last < 0) continue;
    weights.read(tensor, last, 1, row);
    require(std::equal(row.begin(), row.end(), whole.end() - static_cast<std::ptrdiff_t>(width)),
            "the last row is that of the whole");
  }
}

}  // namespace
}  // namespace snug::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace snug;
  const std::string path =
      fuzz::fuzzed_file("model.gguf", std::string_view(reinterpret_cast<const char*>(data), size));
  fuzz::read_or_refuse(path, [&] { fuzz::write_again(fuzz::GgufFile(path), path + ".again"); });
  fuzz::read_or_refuse(path, [&] { fuzz::read_weights(path); });
  return 0;
}
