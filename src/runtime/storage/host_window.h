// How the host writes and reads tensors of the device: at their addresses where it reaches them,
// else through the staging memory of a program that loads or saves, piece by piece. What is written
// is copied while the host fills the next stage of its ring; work that a backend is given later
// comes after it. One thread uses a window; windows of different slots may be used at once. Not
// while a program runs, since it may have the staging memory for its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/device_events.h"
#include "backends/invocation.h"
#include "runtime/execution/executor.h"

namespace snug::runtime {

class HostWindow {
 public:
  // `slot`: which staging memory of the program, below plan::kSlots.
  HostWindow(Executor& executor, program::ProgramName program, int slot);
  // `stages`: plan::kStages of them, of that slot; null where the host reaches the device.
  HostWindow(Executor& executor, std::byte* stages, int slot);
  // Waits until all that was written is in place.
  ~HostWindow();
  HostWindow(const HostWindow&) = delete;
  HostWindow& operator=(const HostWindow&) = delete;

  // Most bytes that may be open at once; no limit where the host reaches the device.
  int64_t capacity_bytes() const;

  // Where to write what belongs at `device`; undefined at first unless the host reaches it.
  // CHECKs the capacity.
  std::byte* open(std::byte* device, int64_t bytes);
  // Puts everything that was opened in its place, before what the backend is given later.
  void close();
  // What lies there, until the next call.
  const std::byte* read(const std::byte* device, int64_t bytes);

 private:
  struct OpenRange {
    std::byte* device;
    const std::byte* host;
    int64_t bytes;
  };

  backends::Backend& backend_;
  std::byte* stages_;                         // null: the host reaches the device
  backends::DeviceEvents* copied_ = nullptr;  // a point for each stage; likewise
  size_t stage_ = 0;                          // the one that is open, or next
  int64_t used_ = 0;
  std::vector<OpenRange> pieces_;
};

// Calls, through the staging memory of `program`, f(piece, first) over a contiguous tensor, as flat
// buffers of at most a stage's bytes that the host may write, `first` the element each begins with.
// What f wrote is in place when this returns.
template <typename F>
void write_pieces(const backends::Buffer& buffer, Executor& executor, program::ProgramName program,
                  F&& f) {
  HostWindow window(executor, program, 0);
  const int64_t width = base::size_of(buffer.dtype);
  const int64_t most = window.capacity_bytes() / width;
  for (int64_t first = 0; first < buffer.elements(); first += most) {
    backends::Buffer piece = buffer;
    piece.shape = {std::min(most, buffer.elements() - first)};
    piece.strides = {1, 0, 0, 0};
    piece.data = window.open(buffer.data + first * width, piece.bytes());
    f(piece, first);
    window.close();
  }
}

}  // namespace snug::runtime
