// Cases of the operation suite: one operation each, with fresh random inputs. Tables of sizes and
// attributes are in cases_*.cpp, one function an area.
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "guarded_run.h"
#include "program/ir/builder.h"

namespace snug::backends::test {

// Element types of a case's tensors by what they are for. What only measures is f32 in all.
struct Types {
  std::string_view name;
  program::DType activation;
  program::DType weight;
  program::DType gradient;  // of a weight
  // Whether the cpu backend must run every kind with them.
  bool required;
};

inline constexpr Types kAllTypes[]{
    {"f32", program::DType::f32, program::DType::f32, program::DType::f32, true},
    {"bf16", program::DType::bf16, program::DType::bf16, program::DType::f32, true},
    {"bf16 gradients", program::DType::bf16, program::DType::bf16, program::DType::bf16, true},
    {"bf16, f32 weights", program::DType::bf16, program::DType::f32, program::DType::f32, false},
    {"f16", program::DType::f16, program::DType::f16, program::DType::f32, true}};

struct OperationCase {
  std::string name;
  program::Program program;  // one operation
  Inputs inputs;             // already rounded to their tensors' types

  const program::Operation& operation() const { return program.operations[0]; }
  program::OperationView view() const { return {program, program.operations[0]}; }
  // Whether every float tensor is f32.
  bool is_f32() const;
  // Whether some tensor is f16.
  bool has_f16() const;
  // "f32 bf16 i32 -> bf16": the element types of its operands.
  std::string types() const;
};

using Random = std::mt19937_64;
// SNUG_TEST_SEED, or a new one each run; printed once.
uint64_t test_seed();

Values normal(Random& random, int64_t count, double mean = 0.0, double deviation = 1.0);
Values integers(Random& random, int64_t count, int64_t low, int64_t high);  // inclusive

// Builds one case: add operands in any order, then finish. Tables build those of all their kinds
// each time; random inputs are drawn for the kind that is wanted alone (nothing: for every kind),
// or where they are asked for.
class CaseBuilder {
 public:
  CaseBuilder(const Types& types, Random& random, std::optional<program::Kind> wanted = {})
      : types_(types), random_(random), wanted_(wanted) {}

  using TensorId = program::TensorId;
  using Shape = program::Shape;
  const Types& types() const { return types_; }
  Random& random() { return random_; }

  // Inputs: normal with this mean and deviation, or the values given.
  TensorId activation(const Shape& shape, double mean = 0.0, double deviation = 1.0);
  TensorId weight(const Shape& shape, double mean = 0.0, double deviation = 1.0);
  TensorId gradient(const Shape& shape, double mean = 0.0, double deviation = 1.0);
  TensorId activation(const Shape& shape, Values values);
  TensorId input(const Shape& shape, program::DType type, Values values);
  TensorId index(const Shape& shape, Values values);
  TensorId measure(const Shape& shape, Values values);

  TensorId output_activation(const Shape& shape);
  TensorId output_gradient(const Shape& shape);
  TensorId output_measure(const Shape& shape);
  TensorId output(const Shape& shape, program::DType type);

  // From here on two-dimensional activations are windows on wider tensors, as in a fused qkv, with
  // so many columns on both sides.
  void use_views(int64_t left = 3, int64_t right = 2) {
    views_ = true;
    left_ = left;
    right_ = right;
  }
  void use_whole_tensors() { views_ = false; }
  // Rounded as the tensor holds them.
  const Values& values(TensorId id);

  OperationCase finish(std::string name, program::Attributes attributes,
                       std::vector<TensorId> reads, std::vector<TensorId> writes,
                       std::vector<TensorId> updates = {});

 private:
  TensorId add(const Shape& shape, program::DType type, bool may_be_view = false);
  TensorId random_input(const Shape& shape, program::DType type, double mean, double deviation,
                        bool may_be_view = false);

  struct Normal {
    double mean, deviation;
  };
  void draw(TensorId id, const Normal& normal);

  const Types& types_;
  Random& random_;
  std::optional<program::Kind> wanted_;
  program::Builder builder_{"case"};
  Inputs inputs_;
  std::map<TensorId, Normal> not_drawn_;
  bool views_ = false;
  int64_t left_ = 0;
  int64_t right_ = 0;
};

// A list that a table function appends to: cases of one kind, others may be left away.
struct CaseList {
  program::Kind kind;
  const Types& types;
  Random& random;
  std::vector<OperationCase> cases;

  CaseBuilder builder() { return {types, random, kind}; }
  void add(OperationCase operation_case) { cases.push_back(std::move(operation_case)); }
};

// The kinds that a table has cases of, and the function that adds them.
struct CaseTable {
  std::vector<program::Kind> kinds;
  void (*add_cases)(CaseList&);
};

// One in each cases_*.cpp, two for attention.
CaseTable adapter_cases();
CaseTable attention_cases();
CaseTable cache_cases();
CaseTable elementwise_cases();
CaseTable expert_cases();
CaseTable layer_cases();
CaseTable loss_cases();
CaseTable matmul_cases();
CaseTable nf4_cases();
CaseTable optimizer_cases();
CaseTable preference_cases();
CaseTable recurrence_cases();
CaseTable top_k_cases();

// All cases of a kind in these types.
std::vector<OperationCase> cases_of(program::Kind kind, const Types& types);
// Of one case, the variants that layout may make: outputs in the bytes of an input.
std::vector<OperationCase> in_place_variants(const OperationCase& operation_case);

}  // namespace snug::backends::test
