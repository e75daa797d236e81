#include "plan/spec/job_documents.h"

#include <algorithm>

#include "base/error.h"
#include "plan/job/job.h"

namespace snug::plan {

using base::PerStream;
using base::TokenStream;

int64_t JobDocuments::size() const { return longer_than(0); }

int64_t JobDocuments::longer_than(int64_t tokens) const {
  int64_t longer = 0;
  for (const text::DocumentLengths& file : files) longer += file.longer_than(tokens);
  return longer;
}

PerStream<int64_t> JobDocuments::longest() const {
  if (files.empty()) return 0;
  return files.front().longest().each([&](TokenStream stream, int32_t) {
    int64_t longest = 0;
    for (const text::DocumentLengths& file : files)
      longest = std::max<int64_t>(longest, file.longest()[stream]);
    return longest;
  });
}

PerStream<int64_t> JobDocuments::shortest_rows() const {
  return longest().map([](int64_t tokens) { return std::max<int64_t>(tokens, 2); });
}

int64_t JobDocuments::most_in(const PerStream<int64_t>& row_tokens) const {
  int64_t groups = 1;
  for (const text::DocumentLengths& file : files)
    groups = std::max<int64_t>(groups, file.most_in(row_tokens, times) / group);
  return groups * group;
}

void JobDocuments::shape_rows(TrainingSpec& spec) const {
  if (files.empty()) return;
  const PerStream<int64_t> whole = longest();
  const int64_t room = spec.row_tokens.decoder() / group;
  if (room < whole.decoder() && room < least)
    base::throw_user_error(
        "max_length={} cuts away all of an answer, of which {} tokens leave something", room,
        least);
  spec.longest_document = spec.row_tokens.each(
      [&](TokenStream stream, int64_t tokens) { return std::min(whole[stream], tokens); });
  spec.row_segments = std::min(spec.row_segments, most_in(spec.row_tokens));
}

}  // namespace snug::plan
