// Many tensors in one launch: what each brings, passed to the kernel by value, and which blocks of
// the grid are whose. Filled by the host.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

// Arguments of a kernel that every driver takes.
inline constexpr int64_t kArgumentBytes = 4096;

// A Tensor has a member first_block; the tensors' blocks follow each other.
template <typename Tensor, int kCapacity>
struct TensorList {
  Tensor at[kCapacity];
  int32_t count = 0;
  uint32_t blocks = 0;

  bool is_full() const { return count == kCapacity; }
  // Requires that the list is not full. A tensor without blocks is left out.
  void add(Tensor tensor, int64_t tensor_blocks) {
    if (tensor_blocks == 0) return;
    tensor.first_block = blocks;
    at[count++] = tensor;
    blocks += static_cast<uint32_t>(tensor_blocks);
  }
};

}  // namespace snug::backends::cuda
