// Rows of documents into the batch tensors of a program. Which rows a micro-batch holds depends on
// their global index only, so batch size and accumulation do not change what a step trains on.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/token_streams.h"
#include "methods/step_inputs.h"
#include "runtime/execution/executor.h"
#include "text/row/row_source.h"

namespace snug::train {

class BatchLoader {
 public:
  // `rows` of `row_tokens` of each stream a micro-batch. `reference`: the log-probability of each
  // document by the model that is compared with, where programs are given it; else empty. Source,
  // executor and reference must outlive the loader.
  BatchLoader(text::RowSource& source, int64_t rows, const base::PerStream<int64_t>& row_tokens,
              runtime::Executor& executor, std::span<const float> reference = {});

  // Loads rows of this source from here on, which are of the same size.
  void read_from(text::RowSource& source, std::span<const float> reference);

  // Counts of rows [first_row, first_row + rows), before they are loaded.
  methods::RowCounts count(int64_t first_row, int64_t rows);
  // Fills the batch tensors of `program` with rows [first_row, first_row + rows) of the run; beyond
  // `end_row` rows are empty (evaluation's last micro-batch). Allocates nothing.
  void load(program::ProgramName program, int64_t first_row, int64_t end_row);

  // The document of each segment of the micro-batch that was loaded last, -1 of an unused one.
  std::span<const int32_t> documents() const { return documents_; }

  int64_t rows_per_epoch();
  // Whether an epoch ends with one of the rows [first_row, first_row + rows).
  bool ends_epoch(int64_t first_row, int64_t rows);

 private:
  // The host's side of a program's batch tensors.
  struct StreamTensors {
    const backends::Buffer* ids = nullptr;
    const backends::Buffer* positions = nullptr;  // null: the network reads none
    const backends::Buffer* bounds = nullptr;
  };
  StreamTensors tensors_of(program::ProgramName program, base::TokenStream stream) const;
  // The part of a row of a micro-batch.
  text::RowBuffers buffers_of(const base::PerStream<StreamTensors>& streams,
                              const backends::Buffer& targets, int64_t row);
  // Bounds count tokens of the flattened micro-batch.
  void move_bounds(const text::RowBuffers& buffers, int64_t row) const;
  void load_reference(program::ProgramName program) const;
  void load_answer_bounds(program::ProgramName program) const;
  void load_labels(program::ProgramName program) const;

  text::RowSource* source_;
  int64_t rows_;
  base::PerStream<int64_t> row_tokens_;
  runtime::Executor& executor_;
  std::span<const float> reference_;
  std::vector<int32_t> documents_;  // (rows x segments)
};

}  // namespace snug::train
