// Rows of documents into the batch tensors of a program. Which rows a micro-batch holds depends on
// their global index only, so batch size and accumulation do not change what a step trains on.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/executor.h"
#include "text/row_source.h"

namespace snug::train {

struct BatchCounts {
  int64_t tokens = 0;          // of documents, without padding
  int64_t trained_tokens = 0;  // that carry loss
  int64_t groups = 0;          // of documents that belong together: pairs
};

class BatchLoader {
 public:
  // `rows` of `row_tokens` a micro-batch. Source and executor must outlive the loader.
  BatchLoader(text::RowSource& source, int64_t rows, int64_t row_tokens,
              runtime::Executor& executor);

  // Of rows [first, first + rows), before they are loaded.
  BatchCounts count(int64_t first_row, int64_t rows);
  // Fills the batch tensors of `program` with rows [first_row, first_row + rows) of the run; beyond
  // `end_row` rows are empty (evaluation's last micro-batch). Allocates nothing.
  void load(program::ProgramName program, int64_t first_row, int64_t end_row);

  int64_t rows_per_epoch();

 private:
  text::RowSource& source_;
  int64_t rows_;
  int64_t row_tokens_;
  runtime::Executor& executor_;
};

}  // namespace snug::train
