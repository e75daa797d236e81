// What a card is to a program that is sized for it, whether the card is here or not.
#pragma once

#include <algorithm>
#include <cstdint>

namespace snug::backends::cuda {

// Scratch that every product of cuBLASLt may use.
inline constexpr int64_t kProductWorkspaceBytes = int64_t{32} << 20;
// Every tensor's offset in an arena is a multiple of this.
inline constexpr int64_t kArenaAlignment = 256;

// Shared memory that a block may ask for on every card with kernels, and what the system takes of
// each block (CUDA programming guide, technical specifications by compute capability).
inline constexpr int64_t kLeastSharedBytes = 99 << 10;
inline constexpr int64_t kReservedSharedBytes = 1 << 10;

constexpr int64_t aligned(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

struct Card {
  int compute_capability = 0;  // 90: 9.0
  int multiprocessors = 0;
  int64_t shared_bytes = 0;  // that a block may ask for
  int64_t product_workspace_bytes = kProductWorkspaceBytes;
  bool cudnn = true;  // is at hand; a plan for a card that is not here takes it to be
  bool cudnn_takes_empty_segments = true;  // likewise: the version that is at hand may not

  // How many blocks of so much shared memory a multiprocessor holds at a time: it has what one
  // block may ask for, and what the system takes of that one.
  constexpr int64_t blocks_at_a_time(int64_t block_bytes) const {
    return (shared_bytes + kReservedSharedBytes) / (block_bytes + kReservedSharedBytes);
  }
};

// A chunk of logits is f32: 2048 rows of a vocabulary of 128,256 are 1 GiB, and its products run at
// the rate of large ones.
constexpr int64_t loss_chunk_rows(int64_t tokens) { return std::min(int64_t{2048}, tokens); }

}  // namespace snug::backends::cuda
