#include "operation_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "comparison.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/kind.h"
#include "program/kinds/loss/grpo.h"
#include "program/kinds/product/nf4.h"

namespace snug::backends::test {
namespace {

constexpr double kF32Tolerance = 1e-5;
constexpr double kBf16Tolerance = 1e-2;
// Three more digits than bf16 are an eighth of its errors.
constexpr double kF16Tolerance = kBf16Tolerance / 8;

double norm_of(const Values& values) {
  double sum = 0;
  for (const double value : values)
    if (std::isfinite(value)) sum += value * value;
  return std::sqrt(sum);
}

// What is updated may nearly cancel what was there (a block's largest of one element): its rounding
// is then a share of what was there, and not of what is left.
double share_of_before(const OperationCase& operation_case, program::TensorId id,
                       const Values& after) {
  const auto before = operation_case.inputs.find(id);
  const double left = norm_of(after);
  if (before == operation_case.inputs.end() || left == 0) return 1;
  return left / std::max(left, norm_of(before->second));
}

// A log-sum-exp is an exponent: its own error, and not its share, is the relative error of the
// probabilities that are made of it. One score that happens to lie near zero makes no test fail.
double share_of_exponent(const OperationCase& operation_case, program::TensorId id,
                         const Values& oracle) {
  const program::Operation& operation = operation_case.operation();
  if (!operation.attributes.is<program::Attention>() ||
      id != find_operand(operation, program::Attention::kLse.name))
    return 1;
  return std::min(1.0, norm_of(oracle) / std::sqrt(static_cast<double>(oracle.size())));
}

// The loss of rewarded answers is a sum of terms of either sign: its error is held against their
// magnitudes, so that a sum that happens to lie near zero makes no test fail.
double share_of_terms(const OperationCase& operation_case, program::TensorId id,
                      const RunResult& oracle) {
  const program::Operation& operation = operation_case.operation();
  if (!operation.attributes.is<program::Grpo>() ||
      id != find_operand(operation, program::Grpo::kLoss.name))
    return 1;
  const Values& terms = oracle.values.at(find_operand(operation, program::Grpo::kTerms.name));
  double magnitude = 0;
  for (size_t i = 0; i < terms.size(); i += static_cast<size_t>(program::kRewardedTermCount))
    magnitude += std::abs(terms[i]);
  return magnitude == 0 ? 1 : std::min(1.0, norm_of(oracle.values.at(id)) / magnitude);
}

class Checks {
 public:
  Checks(Backend& backend, const MustRun& must_run) : backend_(backend), must_run_(must_run) {}

  // A case and its in-place variants, unless the backend refuses its types.
  void run_all_forms(const OperationCase& operation_case, const Types& types) {
    SCOPED_TRACE(fmt::format("{} [{}], SNUG_TEST_SEED={}", operation_case.name,
                             operation_case.types(), test_seed()));
    ASSERT_EQ(program::shape_error(operation_case.view()), "");
    if (!backend_.runs(operation_case.view())) {
      refused_.insert(operation_case.types());
      EXPECT_FALSE(types.required && must_run_(operation_case)) << "does not run here, and must";
      return;
    }
    const RunResult oracle = oracle_of(operation_case);
    ASSERT_TRUE(oracle.violations.empty()) << oracle.violations[0];
    check(operation_case, oracle);
    for (const OperationCase& variant : in_place_variants(operation_case)) {
      SCOPED_TRACE(variant.name);
      check(variant, oracle);
    }
  }

  void report(program::Kind kind) const {
    EXPECT_GT(runs_, 0) << "the tables have no case of this kind that runs";
    std::cout << fmt::format(
        "{:>10} {:<28} {:4} runs, worst error {:.1e} in f32, {:.1e} with bf16, {:.1e} with f16\n",
        backend_.name(), program::name_of(kind), runs_, worst_f32_, worst_bf16_, worst_f16_);
    for (const std::string& types : refused_)
      std::cout << "           does not run: " << types << "\n";
  }

 private:
  // Runs one case and judges every tensor it writes.
  void check(const OperationCase& operation_case, const RunResult& oracle) {
    const RunResult result = guarded_run(backend_, operation_case.program, operation_case.inputs);
    for (const std::string& violation : result.violations) ADD_FAILURE() << violation;
    const bool has_f16 = operation_case.has_f16();
    const double of_16_bits = has_f16 ? kF16Tolerance : kBf16Tolerance;
    const double tolerance = operation_case.is_f32() ? kF32Tolerance : of_16_bits;
    double& worst = operation_case.is_f32() ? worst_f32_ : has_f16 ? worst_f16_ : worst_bf16_;
    size_t position = 0;
    const auto judge = [&](program::TensorId id, std::string_view list) {
      if (operation_case.program.tensor(id).dtype == program::DType::u8)
        return judge_codes(result.values.at(id), oracle.values.at(id), operation_case.is_f32());
      double error = relative_error(result.values.at(id), oracle.values.at(id));
      error *= share_of_exponent(operation_case, id, oracle.values.at(id));
      error *= share_of_terms(operation_case, id, oracle);
      if (list == "update") error *= share_of_before(operation_case, id, oracle.values.at(id));
      worst = std::max(worst, error);
      EXPECT_LE(error, tolerance) << list << " " << position;
      ++position;
    };
    for (const program::TensorId id : operation_case.operation().writes) judge(id, "write");
    position = 0;
    for (const program::TensorId id : operation_case.operation().updates) judge(id, "update");
    ++runs_;
  }

  // Codes are roundings of what is computed in fp64: neighbours where it lies on a threshold. With
  // the few digits of bf16 many elements of a block can lie on the same one.
  static void judge_codes(const Values& codes, const Values& oracle, bool is_f32) {
    ASSERT_EQ(codes.size(), oracle.size());
    size_t differ = 0;
    for (size_t i = 0; i < codes.size(); ++i) {
      EXPECT_LE(std::abs(codes[i] - oracle[i]), 1) << "element " << i;
      differ += codes[i] == oracle[i] ? 0 : 1;
    }
    EXPECT_LE(differ, 1 + codes.size() / (is_f32 ? 1000 : 50));
  }

  Backend& backend_;
  const MustRun& must_run_;
  int runs_ = 0;
  double worst_f32_ = 0;
  double worst_bf16_ = 0;
  double worst_f16_ = 0;
  std::set<std::string> refused_;
};

}  // namespace

void check_kind(Backend& backend, program::Kind kind, const MustRun& must_run, bool only_required,
                const std::function<bool(const OperationCase&)>& is_chosen) {
  Checks checks(backend, must_run);
  std::set<std::string> seen;
  for (const Types& types : kAllTypes) {
    if (only_required && !types.required) continue;
    for (const OperationCase& operation_case : cases_of(kind, types))
      if ((!is_chosen || is_chosen(operation_case)) &&
          seen.insert(operation_case.name + operation_case.types()).second)
        checks.run_all_forms(operation_case, types);
  }
  checks.report(kind);
}

bool cuda_must_run(const OperationCase& operation_case) {
  // Its rounding is of bf16; jobs in fp16 step the masters.
  if (operation_case.operation().kind() == program::Kind::adamw_8bit && operation_case.has_f16())
    return false;
  if (operation_case.operation().kind() != program::Kind::matmul_nf4) return true;
  const program::Tensor& x = operation_case.view()[program::MatmulNf4::kX];
  return x.shape.rows() <= 4 && x.shape.columns() % program::kNf4BlockSize == 0;
}

std::vector<program::Kind> all_kinds() {
  std::vector<program::Kind> kinds;
  for (int i = 0; i < program::kKindCount; ++i) {
    const auto kind = static_cast<program::Kind>(i);
    const program::Traits& traits = program::traits_of(kind);
    if (traits.copying == program::Copying::none && traits.performer == program::Performer::backend)
      kinds.push_back(kind);
  }
  return kinds;
}

}  // namespace snug::backends::test
