// What a plan takes of the documents of a job.
#include "plan/spec/job_documents.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "plan/job/job.h"

namespace snug::plan {
namespace {

text::DocumentLengths lengths_of(const std::vector<int32_t>& tokens) {
  text::DocumentLengths lengths;
  for (const int32_t each : tokens) lengths.add(each);
  return lengths;
}

TrainingSpec spec_of(int64_t row_tokens) {
  TrainingSpec spec;
  spec.row_tokens = row_tokens;
  spec.row_segments = 64;
  return spec;
}

TEST(JobDocuments, ShapeRowsOfAnyLength) {
  const JobDocuments documents{.files = {lengths_of({9, 2, 17, 3}), lengths_of({4, 4, 4, 20})}};
  EXPECT_EQ(documents.size(), 8);
  EXPECT_EQ(documents.longer_than(9), 2);
  EXPECT_EQ(documents.longest(), base::PerStream<int64_t>(20));
  TrainingSpec spec = spec_of(24);
  documents.shape_rows(spec);
  EXPECT_EQ(spec.longest_document, base::PerStream<int64_t>(20));
  EXPECT_EQ(spec.row_segments, 3);
  spec = spec_of(11);
  documents.shape_rows(spec);
  EXPECT_EQ(spec.longest_document, base::PerStream<int64_t>(11));
  EXPECT_EQ(spec.row_segments, 2);
  spec = spec_of(1000);
  spec.row_segments = 3;
  documents.shape_rows(spec);
  EXPECT_EQ(spec.row_segments, 3);
}

TEST(JobDocuments, ShareRowsInWholeGroups) {
  JobDocuments documents{.files = {lengths_of({4, 4, 4, 4, 4, 4})}, .group = 2};
  TrainingSpec spec = spec_of(23);
  documents.shape_rows(spec);
  EXPECT_EQ(spec.row_segments, 4);
  spec = spec_of(7);
  documents.shape_rows(spec);
  EXPECT_EQ(spec.row_segments, 2);
}

TEST(JobDocuments, RefuseRowsThatLeaveNothingOfAnAnswer) {
  JobDocuments documents{.files = {lengths_of({30, 100})}, .group = 1, .least = 61};
  TrainingSpec fits = spec_of(61);
  EXPECT_NO_THROW(documents.shape_rows(fits));
  TrainingSpec cuts = spec_of(60);
  try {
    documents.shape_rows(cuts);
    ADD_FAILURE() << "no answer was cut away";
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("max_length=60 cuts away all of an answer, of which "
                        "61 tokens leave something"),
              std::string::npos)
        << error.what();
  }
  documents.group = 2;
  TrainingSpec pairs = spec_of(121);
  EXPECT_THROW(documents.shape_rows(pairs), base::UserError);
}

TEST(JobDocuments, LeaveASpecAsItIsWhereThereAreNone) {
  TrainingSpec spec = spec_of(16);
  JobDocuments().shape_rows(spec);
  EXPECT_EQ(spec.longest_document, base::PerStream<int64_t>(0));
  EXPECT_EQ(spec.row_segments, 64);
}

}  // namespace
}  // namespace snug::plan
