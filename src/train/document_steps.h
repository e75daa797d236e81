// Steps that train on rows of documents. One thread.
#pragma once

#include <cstdint>

#include "train/batch_loader.h"
#include "train/step_data.h"

namespace snug::train {

class DocumentSteps : public StepData {
 public:
  struct Sizes {
    int64_t rows = 1;          // a micro-batch of a rank
    int64_t accumulation = 1;  // micro-batches per step
    int64_t ranks = 1;
    int64_t rank = 0;
  };
  DocumentSteps(BatchLoader& loader, const Sizes& sizes) : loader_(loader), sizes_(sizes) {}

  int64_t step_rows() const override { return sizes_.rows * sizes_.accumulation * sizes_.ranks; }
  int64_t rows_per_epoch() override { return loader_.rows_per_epoch(); }
  bool ends_epoch(const Step& step) override {
    return loader_.ends_epoch(step.first_row, step.rows);
  }
  std::optional<methods::RowCounts> begin(const Step& step,
                                          const std::atomic<int>& stop_signal) override;
  int64_t micro_batches() const override { return sizes_.accumulation; }
  int64_t first_row_of(int64_t micro) const override {
    return (micro * sizes_.ranks + sizes_.rank) * sizes_.rows;
  }
  void load(program::ProgramName program, int64_t micro) override;

 private:
  BatchLoader& loader_;
  Sizes sizes_;
  Step step_;
};

}  // namespace snug::train
