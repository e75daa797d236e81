// The weights of another source with a PEFT adapter merged into them. Computed in fp32, piece by
// piece: W + s B A, with DoRA's magnitudes over the norms of that; nothing is rounded.
#pragma once

#include <filesystem>
#include <memory>

#include "convert/source/weight_source.h"

namespace snug::convert {

class MergedWeights : public WeightSource {
 public:
  // Reads the adapter's header. `base` must outlive the object. Throws UserError as AdapterChanges
  // does.
  MergedWeights(const WeightSource& base, const std::filesystem::path& adapter);
  ~MergedWeights() override;

  std::span<const SourceTensor> tensors() const override;
  const nlohmann::json& config() const override;
  const std::filesystem::path& companions() const override;
  const models::ModelConfig* model() const override;
  int64_t stored_bytes() const override;
  int64_t read_bytes(const SourceTensor& tensor, int64_t rows) const override;
  void read(const SourceTensor& tensor, int64_t first, int64_t rows,
            std::span<float> values) const override;
  void copy(const SourceTensor& tensor, int64_t offset, std::span<std::byte> bytes) const override;

  // How many tensors differ from the base's, or are new.
  int64_t changed() const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace snug::convert
