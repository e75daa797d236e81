// When the weights of a layer are gathered while ranks compute: what a run does in which order, as
// its communicator and its executor see it. The order is that of the program, so it depends on no
// clock and no load; rank_overlap_test.cpp measures what it gains.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "program/kinds/kind.h"
#include "rank_runs.h"
#include "traced_batch.h"

namespace snug::runtime {
namespace {

using passes::Prefetch;
using program::Phase;
using testing::TinyOptions;
using testing::TinyRun;

constexpr int32_t kLayers = 4;

// Of one rank, in order.
struct Event {
  enum class What : uint8_t { begun, awaited, work };
  What what;
  int32_t layer = -1;  // whose weights are gathered, or which works
  Phase phase = Phase::forward;
};

// Notes all but collectives and their awaits, and whose weights a gather is for.
class Recorder : public Executor::Observer {
 public:
  void before(const program::Program& program, size_t index) override {
    const program::Operation& operation = program.operations[index];
    if (operation.kind() == program::Kind::all_gather) {
      const auto& wholes = operation.writes.empty() ? operation.updates : operation.writes;
      gathered_layer = program.tensor(wholes.front()).layer;
      gathered_name = program.tensor(wholes.front()).name;
    } else if (program::traits_of(operation).category != program::Category::collective &&
               !program::ends_copy(operation)) {
      events.push_back({Event::What::work, operation.layer, operation.phase});
    }
  }
  void after(const program::Program& /*program*/, size_t /*operation*/) override {}

  std::vector<Event> events;
  int32_t gathered_layer = -1;
  std::string gathered_name;  // of the first of its tensors
};

// Ranks whose gathers are noted as they are begun and as they were waited for.
class NotedRanks : public comm::Communicator {
 public:
  NotedRanks(comm::Communicator& ranks, Recorder& recorder) : ranks_(ranks), recorder_(recorder) {}

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  std::string name() const override { return ranks_.name(); }
  comm::Ticket begin_all_gather(std::span<const comm::GatherPart> parts,
                                std::string_view what) override {
    EXPECT_EQ(what, recorder_.gathered_name) << "what an error would call it";
    const comm::Ticket ticket = ranks_.begin_all_gather(parts, what);
    layers_[ticket] = recorder_.gathered_layer;
    recorder_.events.push_back({Event::What::begun, recorder_.gathered_layer});
    return ticket;
  }
  comm::Ticket begin_reduce_scatter(std::span<const comm::ReducePart> parts,
                                    const comm::SumPieces& pieces, std::string_view what) override {
    return ranks_.begin_reduce_scatter(parts, pieces, what);
  }
  comm::Ticket begin_all_reduce(std::span<const comm::SumPart> parts, const comm::SumPieces& pieces,
                                std::string_view what) override {
    return ranks_.begin_all_reduce(parts, pieces, what);
  }
  void wait(comm::Ticket ticket) override {
    ranks_.wait(ticket);
    if (const auto gather = layers_.find(ticket); gather != layers_.end())
      recorder_.events.push_back({Event::What::awaited, gather->second});
  }
  std::vector<std::string> all_gather_text(std::string_view text) override {
    return ranks_.all_gather_text(text);
  }
  void barrier() override { ranks_.barrier(); }
  void set_step(int64_t step) override { ranks_.set_step(step); }
  std::optional<int64_t> step() const override { return ranks_.step(); }
  int64_t bytes_sent() const override { return ranks_.bytes_sent(); }
  void abort(std::string_view reason) override { ranks_.abort(reason); }

 private:
  comm::Communicator& ranks_;
  Recorder& recorder_;
  std::map<comm::Ticket, int32_t> layers_;  // of gathers
};

std::vector<Event> events_of(formats::Method method, Prefetch prefetch) {
  TinyOptions options;
  options.model.num_layers = kLayers;
  options.method = method;
  options.threads = 1;
  options.ranks = testing::full_shard(2);
  options.ranks.prefetch = prefetch;
  std::vector<Event> events;
  testing::expect_no_errors(comm::errors_of_ranks(2, {}, [&](comm::Communicator& ranks) {
    Recorder recorder;
    NotedRanks noted(ranks, recorder);
    const comm::Mesh mesh{.all = &noted, .shards = &noted};
    TinyOptions own = options;
    own.mesh = &mesh;
    TinyRun run(own);
    testing::fill_batch(*run.job().find(program::ProgramName::micro_first), run.executor());
    run.executor().set_observer(&recorder);
    run.executor().run(program::ProgramName::micro_first);
    if (ranks.rank() == 0) events = std::move(recorder.events);
  }));
  return events;
}

// Of a gather that is awaited between the work of one layer and that of the next.
struct Gather {
  int32_t before = -1;  // the layer that works before the await
  int32_t layer = -1;   // whose weights are gathered
  Phase phase = Phase::forward;
  bool begun_before_work = false;  // of the layer before
  bool begun_after_work = false;
};

bool is_work_of(const Event& event, const Event& other) {
  return event.what == Event::What::work && event.layer == other.layer &&
         event.phase == other.phase;
}

std::vector<Gather> gathers_between_layers(const std::vector<Event>& events) {
  std::vector<Gather> gathers;
  std::map<int32_t, size_t> begun;  // by layer, the latest
  const Event* last_work = nullptr;
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].what == Event::What::begun) begun[events[i].layer] = i;
    if (events[i].what == Event::What::work) last_work = &events[i];
    if (events[i].what != Event::What::awaited || events[i].layer < 0) continue;
    if (last_work == nullptr || last_work->layer < 0) continue;
    const size_t begin = begun.at(events[i].layer);
    bool some_before = false;
    bool some_after = false;
    for (size_t j = 0; j < i; ++j)
      if (is_work_of(events[j], *last_work)) (j < begin ? some_before : some_after) = true;
    gathers.push_back(
        {last_work->layer, events[i].layer, last_work->phase, !some_before, !some_after});
  }
  return gathers;
}

class RankGathers : public ::testing::TestWithParam<formats::Method> {};

// Of all layers but the first of the forward pass and the first of the backward pass, before which
// another layer works.
void expect_all_between(const std::vector<Gather>& gathers) {
  int32_t forward = 0;
  for (const Gather& gather : gathers) {
    const bool is_forward = gather.phase == Phase::forward;
    forward += is_forward ? 1 : 0;
    EXPECT_EQ(gather.layer, gather.before + (is_forward ? 1 : -1));
  }
  EXPECT_EQ(forward, kLayers - 1);
  EXPECT_EQ(std::ssize(gathers), 2 * (kLayers - 1));
}

TEST_P(RankGathers, OfTheNextLayerGoOnWhileALayerWorks) {
  const std::vector<Gather> gathers = gathers_between_layers(events_of(GetParam(), Prefetch::pre));
  expect_all_between(gathers);
  for (const Gather& gather : gathers)
    EXPECT_TRUE(gather.begun_before_work) << "layer " << gather.layer << " after " << gather.before;
}

TEST_P(RankGathers, BeginWhenALayerIsDoneWithoutPrefetch) {
  for (const Prefetch prefetch : {Prefetch::post, Prefetch::none}) {
    const std::vector<Gather> gathers = gathers_between_layers(events_of(GetParam(), prefetch));
    expect_all_between(gathers);
    for (const Gather& gather : gathers)
      EXPECT_TRUE(gather.begun_after_work)
          << "layer " << gather.layer << " after " << gather.before;
  }
}

INSTANTIATE_TEST_SUITE_P(, RankGathers,
                         ::testing::Values(formats::Method::full, formats::Method::lora),
                         [](const auto& test) {
                           return test.param == formats::Method::full ? "full" : "lora";
                         });

}  // namespace
}  // namespace snug::runtime
