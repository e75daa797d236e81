// Attention through tables of pages, on the backends that need no card (paged_attention_check.h).
#include "paged_attention_check.h"

#include <gtest/gtest.h>

#include "backends/reference/reference_backend.h"

namespace snug::backends::test {
namespace {

TEST(ReferenceAttention, has_the_same_bits_in_any_pages) {
  reference::ReferenceBackend backend({});
  check_pages(backend, RowsWithoutPages::same_bits);
}

TEST(ReferenceAttention, in_pages_does_not_depend_on_the_rest_of_the_batch) {
  reference::ReferenceBackend backend({});
  check_neighbours(backend);
}

}  // namespace
}  // namespace snug::backends::test
