// How the host writes and reads tensors on the device: directly where the host can access the
// device's memory, else piece by piece through the staging memory of a program that loads or saves.
// A written piece is copied to the device while the host fills the next stage of the ring; work
// that is given to the backend afterwards runs after the copy. One thread uses a window; windows of
// different slots may be used at once. Must not be used while a program runs, since the program may
// use the staging memory for its own tensors.
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
  // `slot` selects the staging memory of the program and is below plan::kSlots.
  HostWindow(Executor& executor, program::ProgramName program, int slot);
  // `stages` points to the plan::kStages stages of that slot; null where the host can access the
  // device's memory.
  HostWindow(Executor& executor, std::byte* stages, int slot);
  // Waits until everything that was written has been copied.
  ~HostWindow();
  HostWindow(const HostWindow&) = delete;
  HostWindow& operator=(const HostWindow&) = delete;

  // The most bytes that can be open at once; unlimited where the host can access the device's
  // memory.
  int64_t capacity_bytes() const;

  // The address at which to write what belongs at `device`. Its contents are undefined at first,
  // unless the host can access the device's memory. CHECKs the capacity.
  std::byte* open(std::byte* device, int64_t bytes);
  // Copies everything that was opened to its destination, before any later work of the backend.
  void close();
  // The bytes at `device`; valid until the next call.
  const std::byte* read(const std::byte* device, int64_t bytes);

 private:
  struct OpenRange {
    std::byte* device;
    const std::byte* host;
    int64_t bytes;
  };

  backends::Backend& backend_;
  std::byte* stages_;                         // null: the host can access the device's memory
  backends::DeviceEvents* copied_ = nullptr;  // one event per stage; null if stages_ is null
  size_t stage_ = 0;                          // the stage that is open, or the next one
  int64_t used_ = 0;
  std::vector<OpenRange> pieces_;
};

// Writes a contiguous tensor through the staging memory of `program`: calls f(piece, first) for
// flat pieces of at most one stage that the host can write; `first` is the index of the piece's
// first element. When this returns, everything that f wrote is in place.
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
