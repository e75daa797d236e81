// What ranks on cards do together, on emulated cards: the bits of the host's collectives, whatever
// is summed; and what is said where ranks do not come or NCCL refuses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../base/captured_stream.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "base/error.h"
#include "collectives_check.h"
#include "comm/local.h"
#include "comm/split.h"
#include "one_collective.h"
#include "program/kinds/transfer/collective.h"
#include "refusals.h"

namespace snug::backends::test {
namespace {

using program::AllReduce;
using program::DType;
using program::RankGroup;

constexpr double kTimeoutSeconds = 20;

class Devices {
 public:
  explicit Devices(int count) { cuda_emulator::devices = count; }
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  ~Devices() { cuda_emulator::devices = 1; }
};

std::vector<std::string> on_cards(int ranks, const std::function<void(const comm::Mesh&)>& work,
                                  int shards = 0) {
  const Devices devices(ranks);
  return on_ranks(ranks, work, shards);
}

std::unique_ptr<Backend> open_card(const comm::Mesh& mesh, double timeout_seconds) {
  return std::make_unique<cuda::CudaBackend>(
      BackendOptions{.mesh = &mesh, .timeout_seconds = timeout_seconds});
}

std::unique_ptr<Backend> open_host(const comm::Mesh& mesh) {
  return std::make_unique<cpu::CpuBackend>(BackendOptions{.threads = 1, .mesh = &mesh});
}

TEST(CudaCollectives, have_the_bits_of_the_host) {
  for (const int ranks : {1, 2, 3, 4}) {
    const Devices devices(ranks);
    EXPECT_EQ(check_collectives(
                  open_host,
                  [](const comm::Mesh& mesh) { return open_card(mesh, kTimeoutSeconds); }, ranks),
              "");
  }
}

TEST(CardCollectives, ARankWithoutACardIsAnError) {
  const Devices devices(2);
  const auto errors = on_ranks(3, [](const comm::Mesh& mesh) { open_card(mesh, kTimeoutSeconds); });
  EXPECT_EQ(
      errors[2],
      "Rank 2 of this machine has no card: there are 2 here. Start no more ranks on a machine "
      "than it has cards.");
  EXPECT_NE(errors[0], "");
}

// A rank that is alone needs no NCCL.
TEST(CardCollectives, OfARankAloneHaveThemToo) {
  const comm::Mesh nobody;
  const auto host = open_host(nobody);
  cuda::CudaBackend card(BackendOptions{});
  for (const CollectiveCase& each : collective_cases()) {
    OneCollective on_host = each.make(0, 1);
    OneCollective on_card = each.make(0, 1);
    on_host.run(*host, {});
    on_card.run(card, {});
    EXPECT_EQ(on_card.results(), on_host.results()) << each.name;
    on_host.expect_traced();
    on_card.expect_traced();
  }
}

// Two replicas of two shards: three groups, of which each rank is in all.
TEST(CardCollectives, OfSeveralGroupsTakePlaceInOrder) {
  const auto errors = on_cards(
      4,
      [&](const comm::Mesh& mesh) {
        const auto host = open_host(mesh);
        const auto card = open_card(mesh, kTimeoutSeconds);
        for (const RankGroup group : {RankGroup::shards, RankGroup::replicas, RankGroup::all}) {
          const comm::Communicator& members = group == RankGroup::shards     ? *mesh.shards
                                              : group == RankGroup::replicas ? *mesh.replicas
                                                                             : *mesh.all;
          const auto make = [&] {
            OneCollective job(mesh.rank());
            job.operation().updates = {job.add(DType::f32, 999)};
            job.expect_all(job.operation().updates.front());
            job.operation().attributes = AllReduce{.group = group, .ranks = members.size()};
            return job;
          };
          OneCollective on_host = make();
          OneCollective on_card = make();
          on_host.run(*host, {});
          on_card.run(*card, {});
          EXPECT_EQ(on_card.results(), on_host.results()) << "rank " << mesh.rank();
        }
      },
      2);
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

// So that the emulated cards would show it where a program lacked one.
TEST(CardCollectives, WithoutAnAwaitAreSeenTooEarly) {
  int differ = 0;
  const auto errors = on_cards(2, [&](const comm::Mesh& mesh) {
    const auto card = open_card(mesh, kTimeoutSeconds);
    OneCollective awaited = gather_case(mesh.rank(), 2, false);
    OneCollective not_awaited = gather_case(mesh.rank(), 2, false);
    awaited.run(*card, {});
    not_awaited.run(*card, {.awaits = false});
    if (mesh.rank() == 0) differ += awaited.results() != not_awaited.results() ? 1 : 0;
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_EQ(differ, 1);
}

TEST(CardCollectives, WithoutNcclAreRefusedOnAllRanks) {
  cuda_emulator::no_nccl = true;
  const auto errors =
      on_cards(2, [&](const comm::Mesh& mesh) { open_card(mesh, kTimeoutSeconds); });
  cuda_emulator::no_nccl = false;
  for (const std::string& error : errors)
    EXPECT_EQ(error, "rank 0: NCCL is not found, as the test wants it");
}

TEST(CardCollectives, SayWhatNcclRefuses) {
  const auto errors = on_cards(2, [&](const comm::Mesh& mesh) {
    const auto card = open_card(mesh, kTimeoutSeconds);
    mesh.all->set_step(7);
    mesh.all->barrier();
    cuda_emulator::refuses_messages = true;
    gather_case(mesh.rank(), 2, false).run(*card, {});
  });
  cuda_emulator::refuses_messages = false;
  for (size_t rank = 0; rank < errors.size(); ++rank)
    EXPECT_EQ(errors[rank],
              fmt::format("rank {}, step 7, all_gather on the card: all_gather: NCCL says: an "
                          "emulated error (as the test wants it)",
                          rank));
}

TEST(CardCollectives, ARankThatDoesNotComeIsAnError) {
  constexpr double kSeconds = 0.3;
  const auto errors = on_cards(2, [&](const comm::Mesh& mesh) {
    const auto card = open_card(mesh, kSeconds);
    mesh.all->set_step(3);
    if (mesh.rank() == 0)
      sum_case(0, 2, false).run(*card, {});
    else
      std::this_thread::sleep_for(std::chrono::seconds(1));
  });
  EXPECT_EQ(errors[0],
            "rank 0, step 3, all_reduce on the card: another rank did not come within 0.3 s");
  EXPECT_EQ(errors[1], "");
}

void begin_other_things() {
  on_cards(2, [&](const comm::Mesh& mesh) {
    const auto card = open_card(mesh, 2);
    OneCollective job(mesh.rank());
    job.operation().updates = {job.add(DType::f32, mesh.rank() == 0 ? 512 : 1024)};
    job.operation().attributes = AllReduce{.ranks = 2};
    job.run(*card, {});
  });
}

TEST(CardCollectives, OfOtherCountsOnOtherRanksAreCaught) {
  EXPECT_TRUE(testing::dies(begin_other_things, "ranks send and expect different counts"));
}

}  // namespace
}  // namespace snug::backends::test
