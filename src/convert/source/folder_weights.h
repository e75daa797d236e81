// A model folder as a source of weights: 16 and 32 bits, linears in NF4 as bitsandbytes stores
// them, and experts in MXFP4. Also the folder of a multimodal model whose text part Snug may know:
// every tensor of its files is listed under the name that it has there.
#pragma once

#include <filesystem>
#include <memory>

#include "convert/source/weight_source.h"

namespace snug::convert {

class FolderWeights : public WeightSource {
 public:
  // Reads config.json and the headers. Throws UserError for a folder that is no model's, for
  // another kind of quantisation, and for weights that are missing or have another shape than
  // config.json says.
  explicit FolderWeights(const std::filesystem::path& folder);
  ~FolderWeights() override;

  // Tables that are the embedding under another name are left out where config.json ties them.
  std::span<const SourceTensor> tensors() const override;
  const nlohmann::json& config() const override;
  const std::filesystem::path& companions() const override;
  const models::ModelConfig* model() const override;
  int64_t stored_bytes() const override;
  int64_t read_bytes(const SourceTensor& tensor, int64_t rows) const override;
  void read(const SourceTensor& tensor, int64_t first, int64_t rows,
            std::span<float> values) const override;
  void copy(const SourceTensor& tensor, int64_t offset, std::span<std::byte> bytes) const override;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace snug::convert
