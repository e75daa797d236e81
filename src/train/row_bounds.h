// How full the rows of a run are: what the clock needs to know of the data.
#pragma once

#include "program/work/batch_bounds.h"
#include "text/row/row_source.h"

namespace snug::train {

// Means over the first rows of the run.
program::ExpectedBounds expected_bounds(text::RowSource& rows);

}  // namespace snug::train
