// What loading and saving did is what their programs say: the notes of every operation, held
// against the program, for jobs of every method and origin; and that one which is left out, done
// twice, done in part or by another decision is seen.
#include "runtime/storage/perform.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "changed_decisions.h"
#include "program/kinds/transfer/storage.h"
#include "runtime/execution/trace_check.h"
#include "runtime/loading/load_weights.h"
#include "runtime/saving/adapter.h"
#include "runtime/saving/checkpoint.h"
#include "runtime/saving/save_model.h"
#include "runtime/saving/save_tensors.h"
#include "tiny_checkpoint.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using backends::Trace;
using program::DType;
using program::Program;
using program::ProgramName;
using testing::golden;
using testing::TemporaryFolder;
using testing::TinyOptions;
using testing::TinyRun;

struct Case {
  const char* name;
  TinyOptions options;
  fs::path folder;  // of the model; empty: made
};

TinyOptions lora() {
  TinyOptions options;
  options.method = formats::Method::lora;
  options.compute = DType::bf16;
  return options;
}

TinyOptions qlora(bool nested) {
  TinyOptions options = lora();
  options.quantization = passes::QuantizeOptions{.nested = nested, .kept = {}};
  return options;
}

std::vector<Case> cases() {
  TinyOptions full;
  full.compute = DType::bf16;
  std::vector<Case> cases{{"full", full, golden("basic") / "model"},
                          {"lora", lora(), golden("sharded_bf16") / "model"},
                          {"qlora", qlora(false), golden("basic") / "model"},
                          {"qlora, nested", qlora(true), golden("basic") / "model"},
                          {"a folder in 4 bits", qlora(false), golden("nf4") / "plain"},
                          {"a folder in 4 bits, nested", qlora(true), golden("nf4") / "double"},
                          {"random", full, {}},
                          {"random, in 4 bits", qlora(false), {}},
                          {"random, in 4 bits, nested", qlora(true), {}}};
  for (Case& each : cases) {
    if (each.folder.empty())
      each.options.init_seed = 42;
    else
      each.options.model = models::find_model(each.folder.string()).config;
  }
  return cases;
}

const program::BatchBounds kNoBounds;

const Program& load_of(const TinyRun& run) { return *run.job().find(ProgramName::load); }

// Of the program `load`, its operations performed in this order.
std::vector<Trace> traces_of(const Case& each, Executor& executor,
                             const std::vector<size_t>& order) {
  const models::ModelConfig& config = each.options.model;
  Sources sources{.model = &config};
  std::optional<formats::TensorIndex> index;
  if (!each.folder.empty()) {
    index.emplace(each.folder);
    sources = sources_of(*index, FileSet::model, "as config.json says", &config, ProgramName::load,
                         executor);
  }
  Performance performance(ProgramName::load, sources, executor);
  for (const size_t i : order) performance.operation(i);
  return performance.finish().traces;
}
std::vector<Trace> traces_of(const Case& each, TinyRun& run, const std::vector<size_t>& order) {
  return traces_of(each, run.executor(), order);
}

// The job with one decision of one of its programs changed.
plan::Job changed_job(const plan::Job& job, const testing::Mutation& mutation) {
  plan::Job changed = job;
  for (Program& program : changed.programs)
    if (program.name == name_of(mutation.program))
      testing::change(program.operations[mutation.operation], mutation);
  return changed;
}

// Calls f(mutation) for other values of each decision of the program; gives how many there were.
template <typename F>
int for_each_mutation(const Program& program, ProgramName name, const F& f) {
  int count = 0;
  for (size_t i = 0; i < program.operations.size(); ++i)
    for (const auto& [decision, planned] : program::decisions_of(program.operations[i]))
      for (const int64_t value : testing::other_values(program.operations[i], decision)) {
        f(testing::Mutation{name, i, std::string(decision), value});
        ++count;
      }
  return count;
}

std::vector<size_t> all_of(const Program& program) {
  std::vector<size_t> order(program.operations.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  return order;
}

TEST(Perform, LoadsAsTheProgramSays) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    TinyRun run(each.options);
    const std::vector<Trace> traces = traces_of(each, run, all_of(load_of(run)));
    EXPECT_EQ(differences({load_of(run), kNoBounds}, traces), std::vector<std::string>{});
    for (size_t i = 0; i < traces.size(); ++i) {
      std::vector<Trace> changed = traces;
      changed[i].bytes -= 1;
      EXPECT_EQ(differences({load_of(run), kNoBounds}, changed).size(), 1U);
      changed = traces;
      changed[i].channel = program::Channel::interconnect;
      EXPECT_EQ(differences({load_of(run), kNoBounds}, changed).size(), 1U);
    }
  }
}

// Each one of a job's operations.
TEST(Perform, AnOperationThatIsLeftOutOrDoneTwiceIsSeen) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    TinyRun run(each.options);
    const std::vector<size_t> all = all_of(load_of(run));
    // The first and the last, and one of each kind and size there is.
    for (const size_t at : {size_t{0}, size_t{1}, size_t{2}, all.size() / 2, all.size() - 1}) {
      std::vector<size_t> order = all;
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(at));
      const auto left_out = differences({load_of(run), kNoBounds}, traces_of(each, run, order));
      ASSERT_EQ(left_out.size(), 1U);
      EXPECT_NE(left_out[0].find("ran 0 times"), std::string::npos) << left_out[0];
      order = all;
      order.push_back(at);
      const auto twice = differences({load_of(run), kNoBounds}, traces_of(each, run, order));
      ASSERT_EQ(twice.size(), 1U);
      EXPECT_NE(twice[0].find("ran 2 times"), std::string::npos) << twice[0];
    }
  }
}

// What the plan says of files is refused where they hold something else.
TEST(Perform, RefusesOrShowsOtherDecisionsOfLoading) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    TinyRun run(each.options);
    const Program& planned = load_of(run);
    const int tried =
        for_each_mutation(planned, ProgramName::load, [&](const testing::Mutation& mutation) {
          const testing::Tried result = testing::tried_apart([&] {
            const plan::Job job = changed_job(run.job(), mutation);
            Executor executor(job, run.executor().backend());
            const size_t i = mutation.operation;
            const Trace trace = traces_of(each, executor, {i})[i];
            return differences({planned, kNoBounds}, i, trace).empty() ? testing::Outcome::ignored
                                                                       : testing::Outcome::seen;
          });
          EXPECT_TRUE(result.outcome == testing::Outcome::refused ||
                      result.outcome == testing::Outcome::seen)
              << mutation.decision << " " << mutation.value << " of operation "
              << mutation.operation << ": " << result.said;
        });
    EXPECT_EQ(tried > 0, !each.folder.empty());
  }
}

TEST(Perform, ReadsBackWhatTheProgramSays) {
  TinyOptions options;
  options.init_seed = 1;
  TinyRun run(options);
  for (const auto& [name, set] : {std::pair{ProgramName::save, FileSet::model},
                                  {ProgramName::save_state, FileSet::optimizer}}) {
    const Program& planned = *run.job().find(name);
    const int tried = for_each_mutation(planned, name, [&](const testing::Mutation& mutation) {
      TemporaryFolder folder;
      const plan::Job job = changed_job(run.job(), mutation);
      Executor executor(job, run.executor().backend());
      for (const program::Operation& operation : planned.operations)
        fill_constant(executor.tensor(name, id_of(operation, program::Write::kTensor)), 0.0F,
                      executor);
      executor.backend().synchronise();
      Saved saved = saved_by(name, set, executor);
      write_tensors(folder.path(), stem_of(set), saved, executor);
      const auto seen = differences({planned, kNoBounds}, saved.traces);
      ASSERT_EQ(seen.size(), 1U);
      EXPECT_NE(seen[0].find("ran with read_back"), std::string::npos) << seen[0];
    });
    EXPECT_EQ(tried, std::ssize(planned.operations));
  }
}

TEST(Perform, SavesAsTheProgramSays) {
  for (const formats::Method method : {formats::Method::full, formats::Method::lora}) {
    TinyOptions options = testing::tiny(method);
    options.init_seed = 1;
    TinyRun run(options);
    random_weights(run.spec().model, run.executor());
    testing::fill_state(run, 3);
    const FileSet files = method == formats::Method::full ? FileSet::model : FileSet::adapter;
    for (const auto& [name, set] :
         {std::pair{ProgramName::save, files}, {ProgramName::save_state, FileSet::optimizer}}) {
      TemporaryFolder folder;
      const Program& program = *run.job().find(name);
      Saved saved = saved_by(name, set, run.executor());
      EXPECT_EQ(saved.tensors.size(), program.operations.size());
      EXPECT_EQ(differences({program, kNoBounds}, saved.traces).size(), program.operations.size());
      write_tensors(folder.path(), stem_of(set), saved, run.executor());
      EXPECT_EQ(differences({program, kNoBounds}, saved.traces), std::vector<std::string>{});
      saved.traces.front().bytes -= 1;
      saved.traces.back().runs += 1;
      EXPECT_EQ(differences({program, kNoBounds}, saved.traces).size(), 2U);
    }
  }
}

TEST(Perform, FilesNameTensorsInOneWay) {
  EXPECT_EQ(name_in(FileSet::model, "model.norm.weight"), "model.norm.weight");
  EXPECT_EQ(name_in(FileSet::model, program::master_name("model.norm.weight")),
            "model.norm.weight");
  EXPECT_EQ(
      name_in(FileSet::adapter, program::master_name("model.layers.0.mlp.up_proj.lora_A.weight")),
      "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight");
  EXPECT_EQ(name_in(FileSet::optimizer, program::master_name("x")), program::master_name("x"));
}

}  // namespace
}  // namespace snug::runtime
