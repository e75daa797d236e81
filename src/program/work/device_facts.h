// What is known of a device that has memory of its own, a card: by its driver where it is here, by
// a row of a hardware table where a plan is made for one that is not.
#pragma once

#include <cstdint>
#include <string>

namespace snug::program {

// How kernels whose warps ask for their products one by one (mma.sync) run on a GPU, those of
// attention among them: where nothing is said, on a Hopper card.
struct TensorCores {
  // Cycles that a quarter of a multiprocessor takes for a product of 16 x 8 x 16 in bf16 with sums
  // in f32: at the maker's peak, and where a warp asks for it. Of a Hopper card's peak mma.sync
  // reaches 62.9 % (Luo et al. 2024, arXiv 2402.13499).
  double peak_cycles = 4;
  double warp_cycles = 4 / 0.629;
  // The shared memory of a multiprocessor, and what the system takes of it for each block: they
  // limit the blocks that it runs at a time.
  double shared_bytes = 228 << 10;
  double reserved_bytes = 1 << 10;
};

// Rates as the maker states them: peaks, which no program reaches.
struct DataSheetRates {
  double bf16_flops_per_second = 0;  // dense, summed in f32
  double f32_flops_per_second = 0;
  double bytes_per_second = 0;       // of the device's memory
  double host_bytes_per_second = 0;  // of the link to the host, each way
  // What a GPU sends to others of its machine in collectives. This is no peak, but what public
  // measurements of such machines show.
  double interconnect_bytes_per_second = 0;
  // What large products reach of the bf16 peak, as others measured it (hardware.yaml).
  double product_share = 0.74;
  TensorCores tensor_cores = {};
};

struct DeviceFacts {
  std::string name;  // "h100", "NVIDIA H100 80GB HBM3"
  bool is_here = false;
  int64_t memory_bytes = 0;  // all that a process could be given
  // The part of memory_bytes that is outside a job's arena: the driver's context, loaded kernels,
  // libraries, other programs. It is measured where the device is here, else it is an assumed
  // bound.
  int64_t outside_bytes = 0;
  // What running kernels will add to that: an assumed upper bound.
  int64_t reserved_bytes = 0;
  // Host memory that the driver and its libraries take, where this process has not loaded them.
  int64_t host_outside_bytes = 0;
  DataSheetRates rates;

  int64_t arena_bytes() const { return memory_bytes - outside_bytes - reserved_bytes; }
};

}  // namespace snug::program
