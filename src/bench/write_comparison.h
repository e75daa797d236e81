// Compares what the operations of a program wrote on two backends, tensor by tensor. Pure values.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "program/ir/program.h"

namespace snug::bench {

// The contents of a tensor after an operation wrote it, with its elements in order.
struct Written {
  base::DType type{};
  program::Shape shape;
  std::vector<double> values;
};

// How much the writes of one operation differ on the two backends.
struct WriteDifference {
  std::string program;
  size_t operation = 0;
  std::string kind;
  std::string tensor;
  double relative = 0;  // norm of the difference / norm of b; if b is zero, the difference's norm
  int64_t element = 0;  // the element with the largest difference
  double value_a = 0;
  double value_b = 0;
};

class WriteComparison {
 public:
  // A floating-point tensor differs if `relative` is above this; an integer tensor if any element
  // differs.
  static constexpr double kTolerance = 1e-3;
  // The tolerance once either side has written a value in 16 bits: everything after it depends on
  // such values.
  static constexpr double kTolerance16 = 5e-2;

  // Sets which tensors are compared: those that both programs write equally often, in the same
  // shape.
  void expect(const program::Program& a, const program::Program& b);
  // Adds what `b` wrote, in the order of its writes; call it for all of them before the first
  // compare().
  void keep(const std::string& program, const std::string& tensor, Written written);
  // Compares what operation `index` of `a` wrote; call it in the order of the writes.
  void compare(const program::Program& a, size_t index, const std::string& tensor,
               const Written& written);

  int64_t compared() const { return compared_; }
  // The numbers of writes without a counterpart, and of tensors that are zero on both sides, for
  // which the comparison says little.
  int64_t only_a() const { return only_a_; }
  int64_t only_b() const { return only_b_; }
  int64_t zeros() const { return zeros_; }
  const std::optional<WriteDifference>& first() const { return first_; }
  const std::map<std::string, WriteDifference>& largest_by_kind() const { return by_kind_; }

 private:
  using Name = std::pair<std::string, std::string>;  // program, tensor

  std::map<Name, std::deque<Written>> kept_;
  std::map<Name, bool> is_common_;
  std::optional<WriteDifference> first_;
  std::map<std::string, WriteDifference> by_kind_;
  int64_t compared_ = 0;
  int64_t only_a_ = 0;
  int64_t only_b_ = 0;
  int64_t zeros_ = 0;
  bool is_in_16_bits_ = false;
};

}  // namespace snug::bench
