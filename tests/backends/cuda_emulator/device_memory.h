// Memory of the emulated device. The host cannot reach it, as on a card: its pages may only be
// touched while a kernel, a copy or a library call runs, each of which holds a DeviceAccess. Safe
// to use from several threads.
#pragma once

#include <cstddef>

namespace snug::cuda_emulator {

// Null if there is not so much. Aligned to a page, at least; zeros at first.
void* allocate_device_memory(size_t bytes);
void free_device_memory(void* data);
size_t allocated_device_bytes();
// Whether all of these bytes are of one allocation.
bool is_device_memory(const void* data, size_t bytes);

// Of all device memory, while some DeviceAccess lives: mprotect's flags.
void protect_device_memory(int protection);

class DeviceAccess {
 public:
  DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
  ~DeviceAccess();
};

// While a thread works off a queue, the pages that its first access opened stay open: to change
// all of them again for each kernel would take longer than many kernels do.
class QueuedWork {
 public:
  QueuedWork();
  QueuedWork(const QueuedWork&) = delete;
  QueuedWork& operator=(const QueuedWork&) = delete;
  ~QueuedWork();
  // For what of the queue is the host's.
  static void close_pages();
};

}  // namespace snug::cuda_emulator
