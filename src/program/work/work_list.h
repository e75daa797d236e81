// What an operation does of a batch: how much of it there is, which algorithm does which share of
// it, and in which pieces. One function of a kind, in its file under kinds/, says all of it: the
// clock prices the shares, backends do the pieces and note them, and traces are held against both.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "program/work/extent.h"

namespace snug::program {

// What one algorithm does of an operation that several share.
struct Share {
  Extent extent;
  bool is_few = false;                                   // of segments that are (RateForm::few)
  std::optional<base::DType> multiplies = std::nullopt;  // nothing: the type of the rate key
};

// A decision about pieces that a router makes: it has something to do where the pieces that it is
// about are of more than so many rows in all.
struct RoutedDecision {
  std::string_view decision;
  bool of_first = false;
  bool of_second = false;
  int64_t more_than = 0;
};

// Two pieces whose sizes follow from values that a program makes, which no host knows before, nor
// after: they stay on the device. What is known is their sum, so traces are held against that, and
// no list of sizes can be equal to theirs.
struct RoutedPieces {
  int64_t rows = 0;
  std::vector<RoutedDecision> decisions;
};

struct WorkList {
  Extent extent{};              // zero of a kind that names no extents (Traits::extents)
  std::vector<Share> shares{};  // empty: one algorithm does all of it
  // The sizes of the pieces in which it is done where a decision of its attributes and the batch
  // give them: rows of each chunk of a loss, queries of an attention that go to the kernel for few.
  std::vector<int64_t> pieces{};
  std::optional<RoutedPieces> routed{};  // in place of sizes
};

WorkList work_of(const OperationView& view, const BatchBounds& bounds);

}  // namespace snug::program
