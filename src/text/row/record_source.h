// One source of records: the files that hold them, and how they become documents.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "text/row/dataset_options.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

// Called by each source whose records turn out to need a tokenizer, which must outlive the loading;
// throws UserError if there is none.
using TokenizerOpener = std::function<const Tokenizer&()>;

struct RecordSource {
  std::string name;                // for messages: what the user called it
  std::vector<std::string> files;  // at least one; their records follow each other
  DatasetOptions options{};
  int64_t limit = 0;  // of its records, from the first; 0: all
  // What of it is left out as a file, and what is missing, for the log.
  std::vector<std::string> notes{};
};

}  // namespace snug::text
