// Many tensors in one launch: the data of each, passed to the kernel by value, and which blocks of
// the grid work on which. Filled in by the host.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

// The size of kernel arguments that every driver accepts.
inline constexpr int64_t kArgumentBytes = 4096;

// A Tensor must have a member first_block; the tensors' blocks are consecutive.
template <typename Tensor, int kCapacity>
struct TensorList {
  Tensor at[kCapacity];
  int32_t count = 0;
  uint32_t blocks = 0;

  bool is_full() const { return count == kCapacity; }
  // Requires that the list is not full. A tensor without blocks is skipped.
  void add(Tensor tensor, int64_t tensor_blocks) {
    if (tensor_blocks == 0) return;
    tensor.first_block = blocks;
    at[count++] = tensor;
    blocks += static_cast<uint32_t>(tensor_blocks);
  }
};

}  // namespace snug::backends::cuda
