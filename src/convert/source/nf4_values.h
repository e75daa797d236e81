// The weights of a model in 16 or 32 bits with each linear as the values that NF4 stands for: what
// an adapter was trained on that was trained with load_in_4bit. Each linear is quantised and
// decoded as loading it does (runtime/loading/stored_weight.h, program/kinds/product/nf4.h).
#pragma once

#include <memory>

#include "convert/source/weight_source.h"

namespace snug::convert {

struct Nf4Options {
  bool double_quant = true;
  bool head = false;  // the head too, where it has weights of its own
  // Weights in 32 or 64 bits are rounded to this type before they are quantised: that of training.
  base::DType compute = base::DType::bf16;
};

class Nf4Values : public WeightSource {
 public:
  // `base` must outlive the object. Throws UserError where Snug does not know its model, or where
  // its linears are in 4 bits already.
  Nf4Values(const WeightSource& base, const Nf4Options& options);
  ~Nf4Values() override;

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
