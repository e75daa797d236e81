#include "runtime/host_window.h"

#include <limits>

#include "base/error.h"

namespace snug::runtime {

HostWindow::HostWindow(Executor& executor, int slot) : backend_(executor.backend()) {
  if (!backend_.host_reaches_device())
    stage_ = executor.tensor("load", fmt::format("load.stage.{}", slot)).data;
}

int64_t HostWindow::capacity_bytes() const {
  return stage_ == nullptr ? std::numeric_limits<int64_t>::max() : plan::kLoadStageBytes;
}

std::byte* HostWindow::open(std::byte* device, int64_t bytes) {
  if (stage_ == nullptr) return device;
  // The next begins where a number of any type may.
  constexpr int64_t kAlignment = 64;
  SNUG_CHECK(used_ + bytes <= capacity_bytes(), "{} bytes through a window that has {} left", bytes,
             capacity_bytes() - used_);
  std::byte* const host = stage_ + used_;
  used_ = (used_ + bytes + kAlignment - 1) / kAlignment * kAlignment;
  pieces_.push_back({device, host, bytes});
  return host;
}

void HostWindow::close() {
  for (const Piece& piece : pieces_) backend_.queue_copy(piece.device, piece.host, piece.bytes);
  if (!pieces_.empty()) backend_.synchronise();
  pieces_.clear();
  used_ = 0;
}

const std::byte* HostWindow::read(const std::byte* device, int64_t bytes) {
  if (stage_ == nullptr) return device;
  SNUG_CHECK(bytes <= capacity_bytes() && pieces_.empty(), "{} bytes read through a window of {}",
             bytes, capacity_bytes());
  backend_.copy(stage_, device, bytes);
  return stage_;
}

}  // namespace snug::runtime
