// That operations which run differently are priced by samples of their own: another value of any
// decision, of every operation of jobs of each backend, gives the rate key another name, or the
// kind says why it need not.
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "changed_decisions.h"
#include "program/work/rate_key.h"

namespace snug::runtime {
namespace {

using program::ProductAlgorithm;

// Whether both values of an algorithm have one name with a reason: what the library makes and what
// is timed next to it do, and a second product that an operation has not (loops) adds no word.
bool are_alike(const program::Operation& operation, std::string_view decision, int64_t planned,
               int64_t value) {
  const auto algorithm_of = [&](std::string_view name, int64_t of) {
    return program::product_algorithm(operation.kind(), name, of);
  };
  const auto one = algorithm_of(decision, planned);
  const auto other = algorithm_of(decision, value);
  if (!one) return false;
  if (program::rated_as(*one) == program::rated_as(*other)) return true;
  for (const auto& [name, of] : program::decisions_of(operation))
    if (algorithm_of(name, of) &&
        program::priced_as(operation.kind(), name) == program::Priced::by_kind)  // the main one
      return name != decision &&
             (*one == ProductAlgorithm::loops || *other == ProductAlgorithm::loops);
  return false;
}

struct PricedCounts {
  int other_names = 0;
  int declared = 0;
  int copies = 0;
};

void expect_named(const program::Program& program, size_t index, PricedCounts& counts) {
  const program::Operation& operation = program.operations[index];
  const std::string name = program::rate_key({program, operation}, {}).form.name();
  program::Operation changed;
  for (const auto& [decision, planned] : program::decisions_of(operation))
    for (const int64_t value : testing::other_values(operation, decision)) {
      changed = operation;
      testing::change(changed, {testing::typed_name(program), index, std::string(decision), value});
      if (program::rate_key({program, changed}, {}).form.name() != name) {
        ++counts.other_names;
      } else if (program::priced_as(operation.kind(), decision) == program::Priced::alike) {
        ++counts.declared;
      } else {
        EXPECT_TRUE(are_alike(operation, decision, planned, value))
            << name << " with another " << decision << ", "
            << program::decision_text(operation.kind(), decision, value);
      }
    }
}

// Kinds that copy operands to be without gaps declare which of them those are as alike, since the
// name says that some are: it does, for each, and the plain form is that without copies.
int expect_copies_named(const program::Program& program, size_t index) {
  program::Operation operation = program.operations[index];
  std::vector<std::string> copies;
  for (const auto& [decision, planned] : program::decisions_of(operation))
    if (decision.starts_with("dense_")) copies.emplace_back(decision);
  const auto key_with = [&](const std::string& decision, int64_t value) {
    testing::change(operation, {testing::typed_name(program), index, decision, value});
    return program::rate_key({program, operation}, {});
  };
  for (const std::string& decision : copies) (void)key_with(decision, 0);
  const program::RateKey bare = program::rate_key({program, operation}, {});
  for (const std::string& decision : copies) {
    const program::RateKey copied = key_with(decision, 1);
    EXPECT_NE(copied.form.name(), bare.form.name()) << decision;
    EXPECT_EQ(program::plain(copied.form), program::plain(bare.form)) << decision;
    (void)key_with(decision, 0);
  }
  return static_cast<int>(copies.size());
}

PricedCounts expect_named(const plan::Job& job) {
  PricedCounts counts;
  std::set<std::tuple<program::Kind, std::vector<std::pair<std::string_view, int64_t>>>> known;
  for (const program::Program& program : job.programs) {
    if (!testing::is_run_by_backends(program)) continue;
    for (size_t i = 0; i < program.operations.size(); ++i) {
      const program::Operation& operation = program.operations[i];
      if (!known.insert({operation.kind(), program::decisions_of(operation)}).second) continue;
      expect_named(program, i, counts);
      counts.copies += expect_copies_named(program, i);
    }
  }
  return counts;
}

template <typename Tested>
class RateKeys : public ::testing::Test {};
TYPED_TEST_SUITE(RateKeys, testing::TestedBackends);

TYPED_TEST(RateKeys, FollowEveryDecision) {
  const TypeParam backend;
  for (const bool has_experts : {false, true}) {
    testing::TinyOptions options{.method = formats::Method::lora};
    if (has_experts) {
      options.method = formats::Method::full;
      options.model.model_type = "mixtral";
      options.model.num_experts = 4;
      options.model.chosen_experts = 2;
      options.model.expert_size = options.model.intermediate_size;
    }
    const PricedCounts counts =
        expect_named(plan::plan_training(testing::spec_of(options), backend));
    EXPECT_GT(counts.other_names, 0);
    EXPECT_GT(counts.declared, 0);
    EXPECT_GT(counts.copies, 0);
  }
}

}  // namespace
}  // namespace snug::runtime
