// Attention through tables of pages on the CUDA backend: its plain kernel, that of the tensor cores
// and that of decoding, which splits keys (paged_attention_check.h).
#include <gtest/gtest.h>

#include "backends/cuda/cuda_backend.h"
#include "paged_attention_check.h"

namespace snug::backends::test {
namespace {

// Without pages, tiles of keys begin where the queries of a block begin to see some.
TEST(CardPages, hold_keys_anywhere_with_the_same_bits) {
  cuda::CudaBackend backend({});
  check_pages(backend, RowsWithoutPages::same_bits_of_one_segment);
}

TEST(CardPages, of_a_sequence_do_not_depend_on_the_rest_of_the_batch) {
  cuda::CudaBackend backend({});
  check_neighbours(backend);
}

}  // namespace
}  // namespace snug::backends::test
