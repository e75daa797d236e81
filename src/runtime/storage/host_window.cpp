#include "runtime/storage/host_window.h"

#include <limits>

#include "backends/backend.h"
#include "base/error.h"
#include "plan/job/storage_programs.h"
#include "program/ir/tensor_names.h"

namespace snug::runtime {

HostWindow::HostWindow(Executor& executor, program::ProgramName program, int slot)
    : HostWindow(executor,
                 executor.backend().host_reaches_device()
                     ? nullptr
                     : executor.tensor(program, program::staging_stage_name(slot)).data,
                 slot) {}

HostWindow::HostWindow(Executor& executor, std::byte* stages, int slot)
    : backend_(executor.backend()), stages_(stages) {
  if (stages_ != nullptr) copied_ = executor.window_points(slot);
}

HostWindow::~HostWindow() {
  if (copied_ == nullptr) return;
  for (size_t stage = 0; stage < plan::kStages; ++stage) copied_->wait(stage);
}

int64_t HostWindow::capacity_bytes() const {
  return stages_ == nullptr ? std::numeric_limits<int64_t>::max() : plan::kStageBytes;
}

std::byte* HostWindow::open(std::byte* device, int64_t bytes) {
  if (stages_ == nullptr) return device;
  // The next piece is aligned for numbers of any type.
  constexpr int64_t kAlignment = 64;
  SNUG_CHECK(used_ + bytes <= capacity_bytes(), "{} bytes through a window that has {} left", bytes,
             capacity_bytes() - used_);
  if (pieces_.empty()) copied_->wait(stage_);
  std::byte* const host = stages_ + static_cast<int64_t>(stage_) * plan::kStageBytes + used_;
  used_ = (used_ + bytes + kAlignment - 1) / kAlignment * kAlignment;
  pieces_.push_back({device, host, bytes});
  return host;
}

void HostWindow::close() {
  if (pieces_.empty()) return;
  for (const OpenRange& piece : pieces_) backend_.queue_copy(piece.device, piece.host, piece.bytes);
  copied_->mark(stage_);
  stage_ = (stage_ + 1) % plan::kStages;
  pieces_.clear();
  used_ = 0;
}

// The copy waits for earlier copies from the same staging memory.
const std::byte* HostWindow::read(const std::byte* device, int64_t bytes) {
  if (stages_ == nullptr) return device;
  SNUG_CHECK(bytes <= capacity_bytes() && pieces_.empty(), "{} bytes read through a window of {}",
             bytes, capacity_bytes());
  backend_.copy(stages_, device, bytes);
  return stages_;
}

}  // namespace snug::runtime
