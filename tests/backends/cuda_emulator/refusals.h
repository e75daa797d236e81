// What the emulated devices and their libraries are and refuse, for tests of what Snug does then.
#pragma once

#include <chrono>
#include <cstdint>

namespace snug::cuda_emulator {

// Devices that a process sees: each has streams of its own, memory is told apart by nobody.
inline int devices = 1;
// Shared memory that a block may ask for, what its kernel declares included: at most that of an
// H100, from 99 KiB on (needs/card.h).
inline constexpr int64_t kLargestSharedBytes = 227 << 10;
inline int64_t most_shared_bytes = kLargestSharedBytes;
// The kernels were compiled for another device.
inline bool has_other_kernels = false;
// The device has no memory left for the graph of a program.
inline bool refuses_graphs = false;
// How long it takes to make a graph.
inline std::chrono::milliseconds graph_time{0};
// cuDNN has no kernel for any attention.
inline bool refuses_attention = false;
// Scratch that cuDNN asks for; 0: what its sums take, which lie as its outputs do.
inline int64_t attention_workspace_bytes = 0;
// What cuDNN computes wrongly: NaN in a batch with a segment without tokens, as before 9.25;
// segments after the first; it forgets the soft cap.
enum class AttentionFault { none, empty_segments, later_segments, no_cap, no_window };
inline AttentionFault attention_fault = AttentionFault::none;

// There is no NCCL here, and NCCL refuses every message.
inline bool no_nccl = false;
inline bool refuses_messages = false;

}  // namespace snug::cuda_emulator
