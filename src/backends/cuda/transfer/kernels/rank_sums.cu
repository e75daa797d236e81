#include "backends/cuda/transfer/kernels/rank_sums.h"

#include <algorithm>

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/transfer/kernels/rank_sum_sizes.h"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 256;
// The most blocks for one entry; each continues until the entry is done. Enough for all
// multiprocessors.
constexpr int64_t kMaxBlocks = 512;

// 48 entries of 64 bytes and the pieces fit in the 4 KiB of a launch's arguments.
template <typename Entry>
struct Table {
  Entry at[kRankSumEntries];
  bool in_vectors[kRankSumEntries];  // elements of the entry can be read as vectors
};

template <int kCount>
__device__ void round_entry(const Rounding& entry) {
  const int64_t step = int64_t{gridDim.x} * kThreads * kCount;
  for (int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount; i < entry.count;
       i += step)
    store(entry.to, i, load<kCount>(entry.from, i));
}

__global__ void __launch_bounds__(kThreads) round_kernel(Table<Rounding> table) {
  if (table.in_vectors[blockIdx.y])
    round_entry<kVectorElements>(table.at[blockIdx.y]);
  else
    round_entry<1>(table.at[blockIdx.y]);
}

template <int kCount>
__device__ Elements<kCount> piece_of(const RankPieces& pieces, int32_t rank, int64_t i) {
  Elements<kCount> values = rank == pieces.own_rank
                                ? load<kCount>(pieces.own, i)
                                : load<kCount>(pieces.received, rank * pieces.received.stride + i);
  if (pieces.rounds)
    for (int k = 0; k < kCount; ++k) values.at[k] = as_held(ElementFormat::bf16, values.at[k]);
  return values;
}

template <int kCount>
__device__ void sum_entry(const RankPieces& pieces, const RankSum& entry) {
  const int64_t step = int64_t{gridDim.x} * kThreads * kCount;
  for (int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount; i < entry.count;
       i += step) {
    Elements<kCount> sum = piece_of<kCount>(pieces, 0, entry.position + i);
    for (int32_t rank = 1; rank < pieces.ranks; ++rank) {
      const Elements<kCount> more = piece_of<kCount>(pieces, rank, entry.position + i);
      for (int k = 0; k < kCount; ++k) sum.at[k] += more.at[k];
    }
    if (entry.adds) {
      const Elements<kCount> before = load<kCount>(entry.to, i);
      for (int k = 0; k < kCount; ++k) sum.at[k] += before.at[k];
    }
    for (int k = 0; k < kCount; ++k)
      if (i + k >= entry.valid) sum.at[k] = 0;
    store(entry.to, i, sum);
  }
}

__global__ void __launch_bounds__(kThreads) sum_kernel(RankPieces pieces, Table<RankSum> table) {
  if (table.in_vectors[blockIdx.y])
    sum_entry<kVectorElements>(pieces, table.at[blockIdx.y]);
  else
    sum_entry<1>(pieces, table.at[blockIdx.y]);
}

// Whether elements from `first` on can be read as vectors.
bool is_vector(const DeviceRows& operand, int64_t first) {
  constexpr uintptr_t kVectorBytes = 16;
  const int64_t bytes = element_bytes(operand.format);
  return (reinterpret_cast<uintptr_t>(operand.data) + static_cast<uintptr_t>(first * bytes)) %
             kVectorBytes ==
         0;
}

bool in_vectors(const Rounding& entry) {
  return entry.count % kVectorElements == 0 && is_vector(entry.from, 0) && is_vector(entry.to, 0);
}

bool in_vectors(const RankPieces& pieces, const RankSum& entry) {
  return entry.count % kVectorElements == 0 && entry.position % kVectorElements == 0 &&
         pieces.received.stride % kVectorElements == 0 && is_vector(pieces.received, 0) &&
         is_vector(pieces.own, 0) && is_vector(entry.to, 0);
}

// Calls run(table, shape) for launches that together cover all entries.
template <typename Entry, typename IsVector, typename LaunchTable>
void over_tables(std::span<const Entry> entries, const IsVector& may, const LaunchTable& run) {
  for (size_t first = 0; first < entries.size();) {
    Table<Entry> table{};
    int64_t blocks = 0;
    uint32_t count = 0;
    for (; first < entries.size() && count < kRankSumEntries; ++first, ++count) {
      const bool vectors = may(entries[first]);
      table.at[count] = entries[first];
      table.in_vectors[count] = vectors;
      blocks = std::max(blocks, ceil_div(entries[first].count,
                                         int64_t{kThreads} * (vectors ? kVectorElements : 1)));
    }
    if (blocks == 0) continue;
    LaunchShape shape;
    shape.block.x = kThreads;
    shape.grid.x = static_cast<uint32_t>(std::min(blocks, kMaxBlocks));
    shape.grid.y = count;
    run(table, shape);
  }
}

}  // namespace

void round_elements(std::span<const Rounding> roundings, cudaStream_t stream) {
  over_tables(
      roundings, [](const Rounding& entry) { return in_vectors(entry); },
      [&](const Table<Rounding>& table, const LaunchShape& shape) {
        launch(round_kernel, shape, stream, table);
      });
}

void sum_pieces(const RankPieces& pieces, std::span<const RankSum> sums, cudaStream_t stream) {
  over_tables(
      sums, [&](const RankSum& entry) { return in_vectors(pieces, entry); },
      [&](const Table<RankSum>& table, const LaunchShape& shape) {
        launch(sum_kernel, shape, stream, pieces, table);
      });
}

void load_rank_sums() {
  load_kernel(reinterpret_cast<const void*>(round_kernel));
  load_kernel(reinterpret_cast<const void*>(sum_kernel));
}

}  // namespace snug::backends::cuda
