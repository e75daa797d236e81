// An update of weights that do not fit in a last-level cache, so that memory bandwidth determines
// its time: one AdamW step with master weights on the host's CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/backend.h"
#include "program/ir/program.h"

namespace snug::bench {

class MemoryUpdate {
 public:
  // The backend must update weights in the host's memory, and must outlive this object.
  MemoryUpdate(backends::Backend& backend, int64_t elements);

  void run();
  // The bytes that a run reads and writes.
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
