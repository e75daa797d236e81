// The collectives of a group of ranks on GPUs, queued on a stream: the same as comm::Collectives on
// the host, with the same bits. A reduction is an all-to-all exchange, and Snug's own kernel adds
// in fp32 in rank order, since NCCL's reductions add in an order of their own. Nothing is allocated
// on the GPU. One thread queues them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backends/cuda/transfer/card_group.h"
#include "backends/cuda/transfer/kernels/rank_sums.h"
#include "comm/part_ranges.h"

namespace snug::backends::cuda {

class CardSums {
 public:
  // `group` is null for a single rank, without NCCL. Throw UserError.
  void all_gather(std::span<const comm::GatherPart> parts, CardGroup* group, cudaStream_t stream);
  void reduce_scatter(std::span<const comm::ReducePart> parts, const comm::SumPieces& pieces,
                      CardGroup* group, cudaStream_t stream);
  void all_reduce(std::span<const comm::SumPart> parts, const comm::SumPieces& pieces,
                  CardGroup* group, cudaStream_t stream);

 private:
  // Sets ranges_ to the next piece and returns its number of elements, 0 at the end.
  template <typename Part>
  int64_t next_piece(std::span<const Part> parts, const comm::SumPieces& pieces, int ranks,
                     comm::Cursor& cursor);
  void reduce_chunk(std::span<const comm::ReducePart> parts, int64_t count,
                    std::span<std::byte> scratch, CardGroup& group, cudaStream_t stream);
  void sum_chunk(std::span<const comm::SumPart> parts, int64_t count, std::span<std::byte> scratch,
                 CardGroup& group, cudaStream_t stream);
  void exchange_pieces(int64_t bytes, std::byte* received, CardGroup& group, cudaStream_t stream);

  // These belong to the call in progress; they are members so that their memory is reused.
  std::vector<comm::PartRange> ranges_;
  std::vector<const std::byte*> pieces_;  // for each rank, what is sent to it
  std::vector<Rounding> roundings_;
  std::vector<RankSum> sums_;
  std::vector<comm::Outgoing> outgoing_;
  std::vector<comm::Incoming> incoming_;
};

}  // namespace snug::backends::cuda
