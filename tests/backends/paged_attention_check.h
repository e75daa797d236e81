// Attention whose keys lie in pages: the same bits in any pages, of any size and in any order, and
// whatever else is in the batch. Failures are recorded in the current test.
#pragma once

#include "backends/backend.h"

namespace snug::backends::test {

// Against rows without pages, where keys lie as in pages in order: a backend may go through rows in
// blocks that begin elsewhere, when these are of several segments or have a window.
enum class RowsWithoutPages : uint8_t { same_bits, same_bits_of_one_segment };

void check_pages(Backend& backend, RowsWithoutPages rows);

// A table that names a page that the pool has not, and keys beyond the table, fail a CHECK.
void check_wrong_tables(Backend& backend);

// A segment alone, and among others in another order.
void check_neighbours(Backend& backend);

}  // namespace snug::backends::test
