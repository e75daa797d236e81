// How long the documents of a file are: what is asked of them before rows are made. A value, which
// holds how many documents there are of each length, and does not need the documents.
#pragma once

#include <cstdint>
#include <map>

#include "base/token_streams.h"

namespace snug::text {

class DocumentLengths {
 public:
  // Adds a document. All have the same streams.
  void add(const base::PerStream<int32_t>& tokens);

  int64_t size() const { return size_; }  // documents
  const base::PerStream<int32_t>& longest() const { return longest_; }
  // The most documents that rows of so many tokens hold, by each stream alone: the shortest ones,
  // each as often as it may come.
  int32_t most_in(const base::PerStream<int64_t>& tokens, int64_t times = 1) const;
  // How many documents have more tokens in a stream.
  int64_t longer_than(int64_t tokens) const;

 private:
  // Documents by their tokens. Lengths are few: they are below max_length.
  using Counts = std::map<int32_t, int32_t>;
  static int32_t most_of(const Counts& counts, int64_t tokens, int64_t times);

  base::PerStream<Counts> counts_;
  Counts by_longest_part_;  // by the tokens of the stream that has most of them
  base::PerStream<int32_t> longest_ = 0;
  int64_t size_ = 0;
};

}  // namespace snug::text
