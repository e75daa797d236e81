// The properties of a GPU, present or not, for which a program is sized.
#pragma once

#include <algorithm>
#include <cstdint>

namespace snug::backends::cuda {

// The scratch that every product of cuBLASLt may use.
inline constexpr int64_t kProductWorkspaceBytes = int64_t{32} << 20;
// Every tensor's offset in an arena is a multiple of this.
inline constexpr int64_t kArenaAlignment = 256;

// The shared memory that a block can have on every supported GPU, and what the system reserves for
// each block (CUDA programming guide, technical specifications by compute capability).
inline constexpr int64_t kLeastSharedBytes = 99 << 10;
inline constexpr int64_t kReservedSharedBytes = 1 << 10;

constexpr int64_t aligned(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

struct Card {
  int compute_capability = 0;  // for example 90 for 9.0
  int multiprocessors = 0;
  int64_t shared_bytes = 0;  // the most that a block can have
  int64_t product_workspace_bytes = kProductWorkspaceBytes;
  bool cudnn = true;  // cuDNN is available; assumed for a GPU that is not present
  // The GPU is here: cuDNN itself is asked what it takes, and not its documentation.
  bool asks_cudnn = false;

  // How many blocks with this much shared memory a multiprocessor runs at once: it has the most
  // that one block can have plus what is reserved for that block.
  constexpr int64_t blocks_at_a_time(int64_t block_bytes) const {
    return (shared_bytes + kReservedSharedBytes) / (block_bytes + kReservedSharedBytes);
  }
};

// The rows in a chunk of logits, which are f32: 2048 rows for a vocabulary of 128,256 take 1 GiB,
// and are enough for products to run at full rate.
constexpr int64_t loss_chunk_rows(int64_t tokens) { return std::min(int64_t{2048}, tokens); }

}  // namespace snug::backends::cuda
