// Attention through tables of pages, on the backends that need no card (paged_attention_check.h).
// SNUG_ISA selects the path of the cpu backend.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "paged_attention_check.h"

namespace snug::backends::test {
namespace {

TEST(ReferencePages, hold_keys_anywhere_with_the_same_bits) {
  reference::ReferenceBackend backend({});
  check_pages(backend, RowsWithoutPages::same_bits);
}

TEST(ReferencePages, of_a_sequence_do_not_depend_on_the_rest_of_the_batch) {
  reference::ReferenceBackend backend({});
  check_neighbours(backend);
}

TEST(CpuPages, hold_keys_anywhere_with_the_same_bits) {
  cpu::CpuBackend backend({.threads = 2});
  check_pages(backend, RowsWithoutPages::same_bits);
}

TEST(CpuPages, of_a_sequence_do_not_depend_on_the_rest_of_the_batch) {
  cpu::CpuBackend backend({.threads = 2});
  check_neighbours(backend);
}

TEST(WrongTables, fail_a_check) {
  reference::ReferenceBackend reference({});
  check_wrong_tables(reference);
  cpu::CpuBackend cpu({.threads = 2});
  check_wrong_tables(cpu);
}

}  // namespace
}  // namespace snug::backends::test
