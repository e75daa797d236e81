// What the operations of a program wrote on one backend against what they wrote on another, tensor
// by tensor. Pure values.
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

// A tensor after an operation wrote it, its elements in order.
struct Written {
  base::DType type{};
  program::Shape shape;
  std::vector<double> values;
};

// How far what one operation wrote is from the other's.
struct WriteDifference {
  std::string program;
  size_t operation = 0;
  std::string kind;
  std::string tensor;
  double relative = 0;  // norm of the difference over the norm of b; of b's zeros the first alone
  int64_t element = 0;  // the one that is furthest off
  double value_a = 0;
  double value_b = 0;
};

class WriteComparison {
 public:
  // A tensor differs by a larger share of its norm than this; integers differ where one does.
  static constexpr double kTolerance = 1e-3;
  // From the first value in 16 bits on, on either side: what follows is made of such values.
  static constexpr double kTolerance16 = 5e-2;

  // Tensors are compared that both programs write, as often, in the same shape.
  void expect(const program::Program& a, const program::Program& b);
  // What `b` wrote, in the order of its writes; all before the first compare().
  void keep(const std::string& program, const std::string& tensor, Written written);
  // What operation `index` of `a` wrote, in the order of its writes.
  void compare(const program::Program& a, size_t index, const std::string& tensor,
               const Written& written);

  int64_t compared() const { return compared_; }
  // Writes that have no counterpart; tensors of zeros alone on both sides, which say little.
  int64_t only_a() const { return only_a_; }
  int64_t only_b() const { return only_b_; }
  int64_t zeros() const { return zeros_; }
  const std::optional<WriteDifference>& first() const { return first_; }
  const std::map<std::string, WriteDifference>& largest_by_kind() const { return by_kind_; }

 private:
  using Name = std::pair<std::string, std::string>;  // of a program and a tensor

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
