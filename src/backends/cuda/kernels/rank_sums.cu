#include "backends/cuda/kernels/rank_sums.h"

#include <algorithm>

#include "backends/cuda/kernels/element.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 256;
// A launch's table is its argument: 48 of 64 bytes and the pieces stay below 4 KiB.
constexpr int kTable = 48;
// Blocks of one entry; each goes on until the entry is done. Enough for all multiprocessors.
constexpr int64_t kMaxBlocks = 512;

template <typename Entry>
struct Table {
  Entry at[kTable];
};

template <int kCount>
__global__ void __launch_bounds__(kThreads) round_kernel(Table<Rounding> table) {
  const Rounding& entry = table.at[blockIdx.y];
  const int64_t step = int64_t{gridDim.x} * kThreads * kCount;
  for (int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount; i < entry.count;
       i += step)
    store(entry.to, i, load<kCount>(entry.from, i));
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
__global__ void __launch_bounds__(kThreads) sum_kernel(RankPieces pieces, Table<RankSum> table) {
  const RankSum& entry = table.at[blockIdx.y];
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

// Whether elements from `first` on may be read as vectors.
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

// Launches of entries that are alike: launch_table(table, shape, vectors).
template <typename Entry, typename IsVector, typename LaunchTable>
void over_tables(std::span<const Entry> entries, const IsVector& may, const LaunchTable& run) {
  for (size_t first = 0; first < entries.size();) {
    Table<Entry> table{};
    const bool vectors = may(entries[first]);
    int64_t longest = 0;
    uint32_t count = 0;
    for (; first < entries.size() && count < kTable && may(entries[first]) == vectors; ++first) {
      longest = std::max(longest, entries[first].count);
      table.at[count++] = entries[first];
    }
    if (longest == 0) continue;
    LaunchShape shape;
    shape.block.x = kThreads;
    const int64_t of_a_block = int64_t{kThreads} * (vectors ? kVectorElements : 1);
    shape.grid.x = static_cast<uint32_t>(std::min(ceil_div(longest, of_a_block), kMaxBlocks));
    shape.grid.y = count;
    run(table, shape, vectors);
  }
}

}  // namespace

void round_elements(std::span<const Rounding> roundings, cudaStream_t stream) {
  over_tables(
      roundings, [](const Rounding& entry) { return in_vectors(entry); },
      [&](const Table<Rounding>& table, const LaunchShape& shape, bool vectors) {
        launch(vectors ? round_kernel<kVectorElements> : round_kernel<1>, shape, stream, table);
      });
}

void sum_pieces(const RankPieces& pieces, std::span<const RankSum> sums, cudaStream_t stream) {
  over_tables(
      sums, [&](const RankSum& entry) { return in_vectors(pieces, entry); },
      [&](const Table<RankSum>& table, const LaunchShape& shape, bool vectors) {
        launch(vectors ? sum_kernel<kVectorElements> : sum_kernel<1>, shape, stream, pieces, table);
      });
}

void load_rank_sums() {
  for (const auto kernel : {round_kernel<kVectorElements>, round_kernel<1>})
    load_kernel(reinterpret_cast<const void*>(kernel));
  for (const auto kernel : {sum_kernel<kVectorElements>, sum_kernel<1>})
    load_kernel(reinterpret_cast<const void*>(kernel));
}

}  // namespace snug::backends::cuda
