#include "collectives_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"
#include "comm/local.h"
#include "comm/split.h"
#include "program/kinds/transfer/collective.h"

namespace snug::backends::test {
namespace {

using program::AllGather;
using program::AllReduce;
using program::DType;
using program::RankGroup;
using program::ReduceScatter;

constexpr double kTimeoutSeconds = 20;

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

}  // namespace

std::vector<std::string> on_ranks(int ranks, const std::function<void(const comm::Mesh&)>& work,
                                  int shards) {
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
  return errors;
}

OneCollective gather_case(int rank, int ranks, bool in_place) {
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

OneCollective sum_case(int rank, int ranks, bool sent_bf16) {
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

std::vector<CollectiveCase> collective_cases() {
  std::vector<CollectiveCase> all;
  for (const bool in_place : {false, true})
    all.push_back({in_place ? "gather_in_place" : "gather",
                   [=](int rank, int ranks) { return gather_case(rank, ranks, in_place); }});
  constexpr int64_t kLittle = 250;  // some pieces begin where vectors do not
  for (const DType type : {DType::f32, DType::bf16})
    for (const bool sent_bf16 : {false, true})
      for (const int way : {0, 1, 2})
        for (const int64_t piece : {int64_t{0}, kLittle})
          all.push_back(
              {fmt::format("reduce_{}{}{}{}", base::name_of(type), sent_bf16 ? "_sent_bf16" : "",
                           way == 0   ? ""
                           : way == 1 ? "_added"
                                      : "_in_place",
                           piece > 0 ? "_in_pieces" : ""),
               [=](int rank, int ranks) {
                 return reduce(rank,
                               {.ranks = ranks,
                                .in_place = way == 2,
                                .accumulate = way == 1,
                                .sent_bf16 = sent_bf16},
                               type, DType::f32);
               },
               piece});
  for (const bool sent_bf16 : {false, true})
    for (const int64_t piece : {int64_t{0}, kLittle})
      all.push_back(
          {fmt::format("sum{}{}", sent_bf16 ? "_sent_bf16" : "", piece > 0 ? "_in_pieces" : ""),
           [=](int rank, int ranks) { return sum_case(rank, ranks, sent_bf16); }, piece});
  return all;
}

std::string check_collectives(const OpenRank& open_host, const OpenRank& open_card, int ranks) {
  const auto errors = on_ranks(ranks, [&](const comm::Mesh& mesh) {
    const auto host = open_host(mesh);
    const auto card = open_card(mesh);
    for (const CollectiveCase& each : collective_cases()) {
      OneCollective on_host = each.make(mesh.rank(), ranks);
      OneCollective on_card = each.make(mesh.rank(), ranks);
      on_host.run(*host, {});
      on_card.run(*card, {.piece_elements = each.piece_elements});
      SCOPED_TRACE(fmt::format("{}, rank {} of {}", each.name, mesh.rank(), ranks));
      EXPECT_EQ(on_card.results(), on_host.results());
      on_host.expect_traced();
      on_card.expect_traced();
    }
  });
  for (const std::string& error : errors)
    if (!error.empty()) return error;
  return "";
}

}  // namespace snug::backends::test
