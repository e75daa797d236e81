// How full the rows of a run are: what the clock needs to know of the data.
#pragma once

#include "program/kind.h"
#include "text/row_source.h"

namespace snug::train {

// Means over the first rows of the run. `segment_tokens` is the length at which full rows of equal
// segments would make attention do the same work: long documents count by their square.
program::Load load_of(text::RowSource& rows);

}  // namespace snug::train
