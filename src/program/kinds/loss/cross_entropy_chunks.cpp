#include <algorithm>

#include "program/kinds/loss/cross_entropy.h"

namespace snug::program {

int64_t next_halved_chunk(int64_t chunk_rows, int64_t rows) {
  int64_t chunk = chunk_rows;
  while (chunk * 3 > rows * 4 && chunk / 2 >= kMinChunkRows) chunk /= 2;
  return chunk;
}

std::vector<int64_t> chunk_sizes(LossAlgorithm algorithm, int64_t chunk_rows, int64_t tokens,
                                 int64_t rows) {
  if (algorithm == LossAlgorithm::whole || chunk_rows == 0) return {tokens};
  std::vector<int64_t> sizes;
  const bool is_halved = algorithm == LossAlgorithm::halved_chunks;
  // With plain chunks there is at least one chunk even if no row carries loss, since it writes the
  // gradient of the weight.
  const int64_t wanted = algorithm == LossAlgorithm::chunks ? std::max<int64_t>(1, rows) : rows;
  const int64_t most = algorithm == LossAlgorithm::online ? rows : tokens;
  for (int64_t done = 0; done < wanted; done += sizes.back())
    sizes.push_back(is_halved ? next_halved_chunk(chunk_rows, rows - done)
                              : std::min(chunk_rows, most - done));
  return sizes;
}

}  // namespace snug::program
