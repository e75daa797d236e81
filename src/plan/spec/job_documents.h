// The documents of a job as its plan knows them: a value that is made once they are read
// (train/data.h). Nothing is asked of the data while a job is planned.
#pragma once

#include <cstdint>
#include <vector>

#include "base/token_streams.h"
#include "text/row/document_lengths.h"

namespace snug::plan {

struct TrainingSpec;

struct JobDocuments {
  std::vector<text::DocumentLengths> files;  // of each file of data; empty: there is no data
  int64_t group = 1;                         // so many documents share a row
  int64_t times = 1;  // the most often that an epoch takes one document (text::most_times)
  // The fewest tokens of a document, of a decoder, that leave something of each answer.
  int64_t least = 0;

  int64_t size() const;
  int64_t longer_than(int64_t tokens) const;
  base::PerStream<int64_t> longest() const;  // tokens, after cutting
  // The shortest rows that hold each document, and that a recipe can ask for.
  base::PerStream<int64_t> shortest_rows() const;
  // Makes the rows of a spec, whatever their length, those of the documents: sets longest_document,
  // and lowers row_segments to the documents that a row can have. Throws UserError where rows are
  // so short that nothing is left of an answer.
  void shape_rows(TrainingSpec& spec) const;

 private:
  // Room for so many documents a row, in groups, is enough for any order of them.
  int64_t most_in(const base::PerStream<int64_t>& row_tokens) const;
};

}  // namespace snug::plan
