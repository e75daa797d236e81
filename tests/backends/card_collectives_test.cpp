// What ranks on cards do together, on emulated cards: the bits of the host's collectives, whatever
// is summed; and what is said where ranks do not come or NCCL refuses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../base/captured_stream.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "base/error.h"
#include "comm/local.h"
#include "comm/split.h"
#include "one_collective.h"
#include "refusals.h"

namespace snug::backends::test {
namespace {

using program::AllGather;
using program::AllReduce;
using program::DType;
using program::RankGroup;
using program::ReduceScatter;

constexpr double kTimeoutSeconds = 20;

// The ranks as threads of this process; what a rank's thread throws is given back, by rank.
std::vector<std::string> on_ranks(int ranks, const std::function<void(const comm::Mesh&)>& work,
                                  int shards = 0) {
  cuda_emulator::devices = ranks;
  comm::LocalGroup group(ranks, {.timeout = std::chrono::duration<double>(kTimeoutSeconds)});
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto all = group.communicator(rank);
        comm::Mesh mesh{.all = all.get(), .shards = all.get(), .local_rank = rank};
        std::unique_ptr<comm::Communicator> of_shards;
        std::unique_ptr<comm::Communicator> of_replicas;
        if (shards > 0) {
          of_shards = comm::split(*all, rank / shards, rank);
          of_replicas = comm::split(*all, rank % shards, rank);
          mesh.shards = of_shards.get();
          mesh.replicas = of_replicas.get();
        }
        work(mesh);
      } catch (const base::UserError& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  cuda_emulator::devices = 1;
  return errors;
}

std::unique_ptr<Backend> open_card(const comm::Mesh& mesh, double timeout_seconds) {
  return std::make_unique<cuda::CudaBackend>(
      BackendOptions{.mesh = &mesh, .timeout_seconds = timeout_seconds});
}

std::unique_ptr<Backend> open_host(const comm::Mesh& mesh) {
  return std::make_unique<cpu::CpuBackend>(BackendOptions{.threads = 1, .mesh = &mesh});
}

struct Case {
  std::string name;
  std::function<OneCollective(int rank, int ranks)> make;
  int64_t scratch_bytes = 0;  // 0: as planned
};

OneCollective gather(int rank, int ranks, bool in_place) {
  OneCollective job(rank);
  for (const int64_t elements : {256, 33, 1024}) {
    const int whole = job.add(DType::bf16, elements * ranks);
    const int shard = in_place ? whole : job.add(DType::bf16, elements);
    if (!in_place) job.operation().reads.push_back(shard);
    (in_place ? job.operation().updates : job.operation().writes).push_back(whole);
    job.expect_all(whole);
  }
  job.operation().attributes = AllGather{.ranks = ranks, .in_place = in_place};
  return job;
}

// Shards of several tensors, the last of which belong to the tensor in part.
OneCollective reduce(int rank, const ReduceScatter& attributes, DType type, DType shard_type) {
  OneCollective job(rank);
  const int ranks = attributes.ranks;
  for (const int64_t elements : {512, 8, 1280}) {
    const int whole = job.add(type, elements * ranks);
    const int shard = attributes.in_place ? whole : job.add(shard_type, elements);
    job.tensor(shard).whole = program::Shape{elements * ranks - 5};
    if (!attributes.in_place) job.operation().reads.push_back(whole);
    const bool updates = attributes.in_place || attributes.accumulate;
    (updates ? job.operation().updates : job.operation().writes).push_back(shard);
    job.expect(shard, attributes.in_place ? elements * rank : 0, elements);
  }
  job.operation().attributes = attributes;
  return job;
}

OneCollective sum(int rank, int ranks, bool sent_bf16) {
  OneCollective job(rank);
  for (const auto& [type, elements] :
       {std::pair{DType::f32, 1000}, {DType::f32, 1}, {DType::bf16, 777}, {DType::f32, 4096}}) {
    job.operation().updates.push_back(job.add(type, elements));
    job.expect_all(job.operation().updates.back());
  }
  job.operation().attributes =
      AllReduce{.group = RankGroup::all, .ranks = ranks, .sent_bf16 = sent_bf16};
  return job;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const bool in_place : {false, true})
    all.push_back({in_place ? "gather_in_place" : "gather",
                   [=](int rank, int ranks) { return gather(rank, ranks, in_place); }});
  constexpr int64_t kLittleScratch = 8 << 10;
  for (const DType type : {DType::f32, DType::bf16})
    for (const bool sent_bf16 : {false, true})
      for (const int way : {0, 1, 2})
        for (const int64_t scratch : {int64_t{0}, kLittleScratch})
          all.push_back(
              {fmt::format("reduce_{}{}{}{}", base::name_of(type), sent_bf16 ? "_sent_bf16" : "",
                           way == 0   ? ""
                           : way == 1 ? "_added"
                                      : "_in_place",
                           scratch > 0 ? "_in_pieces" : ""),
               [=](int rank, int ranks) {
                 return reduce(rank,
                               {.ranks = ranks,
                                .in_place = way == 2,
                                .accumulate = way == 1,
                                .sent_bf16 = sent_bf16},
                               type, DType::f32);
               },
               scratch});
  for (const bool sent_bf16 : {false, true})
    for (const int64_t scratch : {int64_t{0}, kLittleScratch})
      all.push_back(
          {fmt::format("sum{}{}", sent_bf16 ? "_sent_bf16" : "", scratch > 0 ? "_in_pieces" : ""),
           [=](int rank, int ranks) { return sum(rank, ranks, sent_bf16); }, scratch});
  return all;
}

TEST(CardCollectives, HaveTheBitsOfTheHost) {
  for (const int ranks : {1, 2, 3, 4}) {
    const auto errors = on_ranks(ranks, [&](const comm::Mesh& mesh) {
      const auto host = open_host(mesh);
      const auto card = open_card(mesh, kTimeoutSeconds);
      for (const Case& each : cases()) {
        OneCollective on_host = each.make(mesh.rank(), ranks);
        OneCollective on_card = each.make(mesh.rank(), ranks);
        on_host.run(*host, {});
        on_card.run(*card, {.scratch_bytes = each.scratch_bytes});
        EXPECT_EQ(on_card.results(), on_host.results())
            << each.name << ", rank " << mesh.rank() << " of " << ranks;
      }
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }
}

// A rank that is alone needs no NCCL.
TEST(CardCollectives, OfARankAloneHaveThemToo) {
  const comm::Mesh nobody;
  const auto host = open_host(nobody);
  cuda::CudaBackend card(BackendOptions{});
  for (const Case& each : cases()) {
    OneCollective on_host = each.make(0, 1);
    OneCollective on_card = each.make(0, 1);
    on_host.run(*host, {});
    on_card.run(card, {});
    EXPECT_EQ(on_card.results(), on_host.results()) << each.name;
  }
}

// Two replicas of two shards: three groups, of which each rank is in all.
TEST(CardCollectives, OfSeveralGroupsTakePlaceInOrder) {
  const auto errors = on_ranks(
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
  const auto errors = on_ranks(2, [&](const comm::Mesh& mesh) {
    const auto card = open_card(mesh, kTimeoutSeconds);
    OneCollective awaited = gather(mesh.rank(), 2, false);
    OneCollective not_awaited = gather(mesh.rank(), 2, false);
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
      on_ranks(2, [&](const comm::Mesh& mesh) { open_card(mesh, kTimeoutSeconds); });
  cuda_emulator::no_nccl = false;
  for (const std::string& error : errors)
    EXPECT_EQ(error, "rank 0: NCCL is not found, as the test wants it");
}

TEST(CardCollectives, SayWhatNcclRefuses) {
  const auto errors = on_ranks(2, [&](const comm::Mesh& mesh) {
    const auto card = open_card(mesh, kTimeoutSeconds);
    mesh.all->set_step(7);
    mesh.all->barrier();
    cuda_emulator::refuses_messages = true;
    gather(mesh.rank(), 2, false).run(*card, {});
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
  const auto errors = on_ranks(2, [&](const comm::Mesh& mesh) {
    const auto card = open_card(mesh, kSeconds);
    mesh.all->set_step(3);
    if (mesh.rank() == 0)
      sum(0, 2, false).run(*card, {});
    else
      std::this_thread::sleep_for(std::chrono::seconds(1));
  });
  EXPECT_EQ(errors[0],
            "rank 0, step 3, all_reduce on the card: another rank did not come within 0.3 s");
  EXPECT_EQ(errors[1], "");
}

void begin_other_things() {
  on_ranks(2, [&](const comm::Mesh& mesh) {
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
