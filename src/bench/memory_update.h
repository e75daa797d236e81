// An update of weights that are more than a last-level cache holds, so that it takes as long as the
// memory needs to move them: one AdamW with master weights, on the host's processor.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/backend.h"
#include "program/ir/program.h"

namespace snug::bench {

class MemoryUpdate {
 public:
  // Updates by a backend that updates weights in the host's memory, which must outlive this.
  MemoryUpdate(backends::Backend& backend, int64_t elements);

  void run();
  // The bytes that a run moves.
  double bytes() const;

 private:
  std::vector<backends::Buffer> allocate(const std::vector<program::TensorId>& ids);

  backends::Backend& backend_;
  program::Program program_;
  std::vector<std::unique_ptr<backends::Arena>> memory_;
  std::vector<backends::Buffer> reads_;
  std::vector<backends::Buffer> updates_;
  std::unique_ptr<backends::Prepared> prepared_;
};

}  // namespace snug::bench
