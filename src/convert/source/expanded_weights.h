// The weights of another source with more layers, as LLaMA-Pro has them (Wu et al. 2024, "LLaMA
// Pro: Progressive LLaMA with Block Expansion"): after every (L / N)-th of L layers stands a copy
// of it whose branches add nothing, since the last linears of its blocks are 0. The result computes
// what the base does, bit for bit, until the new layers are trained.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "convert/source/weight_source.h"

namespace snug::convert {

class ExpandedWeights : public WeightSource {
 public:
  // `base` must outlive the object. Throws UserError, which names `new_layers` as num_new_layers,
  // for a number that does not divide the model's layers; for a model inside a multimodal one, and
  // for an encoder-decoder; and where config.json says what a layer does by a rule that would give
  // a layer of the result something else than the layer that it stands for.
  ExpandedWeights(const WeightSource& base, int64_t new_layers);
  ~ExpandedWeights() override;

  std::span<const SourceTensor> tensors() const override;
  const nlohmann::json& config() const override;
  const std::filesystem::path& companions() const override;
  const models::ModelConfig* model() const override;
  int64_t stored_bytes() const override;
  int64_t read_bytes(const SourceTensor& tensor, int64_t rows) const override;
  void read(const SourceTensor& tensor, int64_t first, int64_t rows,
            std::span<float> values) const override;
  void copy(const SourceTensor& tensor, int64_t offset, std::span<std::byte> bytes) const override;

  // The numbers of the new layers in the result, ascending, and their names ("model.layers.3").
  const std::vector<int64_t>& new_layers() const;
  std::vector<std::string> new_layer_names() const;

 private:
  class Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace snug::convert
