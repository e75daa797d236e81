// That ranks obey the pieces in which their sums are planned: given other ones, all of them alike,
// a rank refuses them in prepare(), or its trace shows them.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>

#include "changed_decisions.h"
#include "rank_runs.h"

namespace snug::runtime {
namespace {

using testing::Mutation;
using testing::Outcome;

constexpr int kRanks = 2;

plan::TrainingSpec spec_of_ranks(const passes::ShardingOptions& ranks) {
  testing::TinyOptions options;
  options.ranks = ranks;
  plan::TrainingSpec spec = testing::spec_of(options);
  spec.accumulation = 2;
  return spec;
}

// What a rank did with the operation that is changed.
template <typename Tested>
Outcome outcome_on(comm::Communicator& communicator, const plan::TrainingSpec& spec,
                   const Mutation& mutation) {
  const bool are_shards = spec.ranks.shards > 1;
  const comm::Mesh mesh{.all = &communicator,
                        .shards = are_shards ? &communicator : nullptr,
                        .replicas = are_shards ? nullptr : &communicator};
  testing::Mutating<Tested> backend(&mesh);
  const plan::Job job = plan::plan_training(spec, backend);
  backend.end_planning();
  const program::Program& program = *job.find(mutation.program);
  backend.mutate(program, mutation);
  Executor executor(job, backend, &mesh);
  testing::fill_batch(program, executor);
  const std::vector<backends::Trace> traces = executor.run_traced(mutation.program);
  const Planned planned{program, executor.bounds(mutation.program)};
  if (!differences(planned, mutation.operation, traces[mutation.operation]).empty())
    return Outcome::seen;
  const program::OperationView as_planned{program, program.operations[mutation.operation]};
  return program::work_of(backend.changed_view(), planned.bounds).pieces ==
                 program::work_of(as_planned, planned.bounds).pieces
             ? Outcome::without_work
             : Outcome::ignored;
}

// The same of all ranks.
template <typename Tested>
Outcome outcome_of_ranks(const plan::TrainingSpec& spec, const Mutation& mutation) {
  std::mutex mutex;
  std::set<Outcome> outcomes;
  const auto errors = comm::errors_of_ranks(kRanks, {}, [&](comm::Communicator& communicator) {
    const Outcome outcome = outcome_on<Tested>(communicator, spec, mutation);
    const std::lock_guard lock(mutex);
    outcomes.insert(outcome);
  });
  for (const std::string& error : errors)
    if (!error.empty()) return Outcome::refused_late;
  return outcomes.size() == 1 ? *outcomes.begin() : Outcome::ignored;
}

template <typename Tested>
class MutatedPieces : public ::testing::Test {
 protected:
  static void expect_obeyed(const plan::TrainingSpec& spec) {
    const Tested target;
    const plan::Job job = plan::plan_training(spec, target);
    std::set<std::pair<program::Kind, std::vector<int64_t>>> known;
    for (const program::Program& program : job.programs) {
      if (!testing::is_run_by_backends(program)) continue;
      for (size_t i = 0; i < program.operations.size(); ++i) {
        const program::Operation& operation = program.operations[i];
        const auto pieces = program::work_of({program, operation}, {}).pieces;
        if (program::traits_of(operation).category != program::Category::collective ||
            pieces.empty() || !known.insert({operation.kind(), pieces}).second)
          continue;
        for (const auto& [decision, planned] : program::decisions_of(operation))
          for (const int64_t value : testing::other_values(operation, decision))
            expect_obeyed(spec, operation.kind(),
                          Mutation{testing::typed_name(program), i, std::string(decision), value});
      }
    }
  }

  static void expect_obeyed(const plan::TrainingSpec& spec, program::Kind kind,
                            const Mutation& mutation) {
    const testing::Tried tried =
        testing::tried_apart([&] { return outcome_of_ranks<Tested>(spec, mutation); });
    const std::string what =
        fmt::format("{} of {} with {} {}: {}", name_of(kind), name_of(mutation.program),
                    mutation.decision, mutation.value, tried.said);
    EXPECT_NE(tried.outcome, Outcome::ignored) << what;
    EXPECT_NE(tried.outcome, Outcome::refused_late) << what;
    EXPECT_NE(tried.outcome, Outcome::crashed) << what;
    ++outcomes[tried.outcome];
  }

  static inline std::map<Outcome, int> outcomes;
  void SetUp() override { outcomes.clear(); }
};

TYPED_TEST_SUITE(MutatedPieces, testing::TestedBackends);

TYPED_TEST(MutatedPieces, AreRefusedOrSeenOnEveryRank) {
  TestFixture::expect_obeyed(spec_of_ranks(testing::full_shard(kRanks)));
  TestFixture::expect_obeyed(spec_of_ranks({.replicas = kRanks, .threshold_elements = 1}));
  EXPECT_EQ(TestFixture::outcomes.contains(Outcome::seen), TypeParam::kObeysOthers);
  EXPECT_EQ(TestFixture::outcomes.contains(Outcome::refused), !TypeParam::kObeysOthers);
}

}  // namespace
}  // namespace snug::runtime
