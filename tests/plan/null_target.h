// A machine that is only said to be there: it runs every kind (products of NF4 codes with a few
// rows only), keeps the logits of a chunk of 2048 rows in bf16 as its only scratch, and has
// whatever memory a test gives it. The figures are those of a GPU's kernels (facts of the memory
// table that the goals come from).
#pragma once

#include <string>

#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/product/nf4.h"
#include "program/work/target.h"

namespace snug::plan {

class NullTarget : public program::Target {
 public:
  explicit NullTarget(int64_t device_bytes = int64_t{1} << 50) : device_bytes_(device_bytes) {}

  std::string name() const override { return "null"; }
  std::string library_versions() const override { return "none"; }
  int64_t capacity_bytes(program::Space) const override { return device_bytes_; }
  int64_t alignment_bytes() const override { return 256; }
  bool runs(const program::OperationView& view) const override {
    return view.operation.kind() != program::Kind::matmul_nf4 ||
           view[program::MatmulNf4::kX].shape.rows() <= kDecodeRows;
  }
  program::Workspace workspace(const program::OperationView& view) const override {
    if (view.operation.kind() != program::Kind::linear_cross_entropy_train) return {};
    const program::Shape& weight = view[program::LinearCrossEntropyTrain::kWeight].shape;
    return {.bytes = kChunkRows * weight[0] * 2, .basis = program::WorkspaceBasis::bound};
  }
  program::Attributes decide(const program::OperationView& view) const override {
    program::Attributes decided = view.operation.attributes;
    if (auto* loss = decided.get_if<program::LinearCrossEntropyTrain>())
      loss->chunks.rows = kChunkRows;
    return decided;
  }

 private:
  static constexpr int64_t kChunkRows = 2048;
  static constexpr int64_t kDecodeRows = 16;  // of a product that reads NF4 codes itself
  int64_t device_bytes_;
};

}  // namespace snug::plan
