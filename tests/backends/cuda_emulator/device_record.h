// What the emulated devices did, in order, for tests that hold what a backend says against what it
// had them do. Of one thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace snug::cuda_emulator {

// A line for each kernel (what it was launched with, which tells kernels of unlike operands apart,
// its grid, block and shared memory) and each call of a library (its shapes). Null: nothing is
// kept.
inline std::vector<std::string>* device_record = nullptr;

// `line` makes the line, where one is kept.
template <typename F>
void record_device(const F& line) {
  if (device_record != nullptr) device_record->push_back(line());
}

}  // namespace snug::cuda_emulator
