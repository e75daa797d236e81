// Mixtures of data sets: those of the alignment handbook (dataset_mixture), and training and
// evaluation data that are two parts of one set.
#pragma once

#include <string>
#include <vector>

#include "formats/foreign/dataset_list.h"
#include "formats/foreign/tool_entries.h"

namespace snug::formats {

struct Mixture {
  ToolDatasets datasets;
  std::string test_size;  // a share or a number of records to evaluate on; empty: none
};

// {datasets: [{id, config, split, columns, weight}, ...], seed, test_split_size}, where a weight is
// the share of a data set's own records.
Mixture read_mixture(const Written& written, const std::string& file);

// The share of the records that evaluates where both lists name one and the same data set, of which
// training takes the first (train[:95%]) and evaluation the rest (train[95%:]): their splits become
// whole. 0 where it is not so.
double held_out_share(std::vector<ToolEntry>& training, const std::vector<ToolEntry>& evaluation);

}  // namespace snug::formats
