#include "collective_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "checked_sums.h"
#include "comm/gather_text.h"
#include "comm/split.h"

namespace snug::comm {
namespace {

using base::DType;

constexpr DType kTypes[] = {DType::f32, DType::bf16};

struct Types {
  DType whole, shard, sent;
};

std::vector<Types> all_types() {
  std::vector<Types> types;
  for (const DType whole : kTypes)
    for (const DType shard : kTypes)
      for (const DType sent : kTypes) types.push_back({whole, shard, sent});
  return types;
}

void wait_checked(Communicator& communicator, Ticket ticket, int64_t expected_bytes,
                  int64_t before) {
  communicator.wait(ticket);
  EXPECT_EQ(communicator.bytes_sent() - before, expected_bytes);
}

// Of one rank to all others.
int64_t sent_to_others(const Communicator& communicator, int64_t elements, DType type) {
  return (communicator.size() - 1) * elements * base::size_of(type);
}

void check_shard(const Bytes& shard, int rank, int ranks, int64_t part, int64_t elements,
                 int64_t valid, const Types& types, bool add) {
  int wrong = 0;
  for (int64_t i = 0; i < elements; ++i) {
    float expected = sum_of(ranks, part, rank * elements + i, types.whole, types.sent);
    if (add) expected += rounded(value_of(rank, part + 1000, i), types.shard);
    expected = i < valid ? rounded(expected, types.shard) : 0.0F;
    wrong += get(shard, types.shard, i) != expected;
  }
  EXPECT_EQ(wrong, 0) << ranks << " ranks, rank " << rank << ", " << elements << " elements, "
                      << base::name_of(types.whole) << " " << base::name_of(types.sent) << " "
                      << base::name_of(types.shard) << (add ? " added" : "");
}

void check_one_reduce(Communicator& communicator, int64_t elements, int64_t valid,
                      const Types& types, bool add) {
  const int ranks = communicator.size();
  const int rank = communicator.rank();
  const int64_t part = elements;
  const Bytes whole = values_of(rank, part, ranks * elements, types.whole);
  const Bytes before = whole;
  Bytes shard = values_of(rank, part + 1000, elements, types.shard);
  auto scratch = scratch_for(communicator, ranks * elements);
  const ReducePart parts[] = {
      {whole.data(), shard.data(), elements, types.whole, types.shard, types.sent, add, valid}};
  const int64_t sent = communicator.bytes_sent();
  wait_checked(communicator, communicator.begin_reduce_scatter(parts, scratch, "sums"),
               sent_to_others(communicator, elements, types.sent), sent);
  check_shard(shard, rank, ranks, part, elements, valid, types, add);
  EXPECT_EQ(whole, before);
}

void check_one_all_reduce(Communicator& communicator, int64_t elements, DType type, DType sent) {
  const int ranks = communicator.size();
  Bytes values = values_of(communicator.rank(), elements, elements, type);
  auto scratch = scratch_for(communicator, elements);
  const SumPart parts[] = {{values.data(), elements, type, sent}};
  communicator.wait(communicator.begin_all_reduce(parts, scratch, "sums"));
  int wrong = 0;
  for (int64_t i = 0; i < elements; ++i) {
    const float expected = rounded(rounded(sum_of(ranks, elements, i, type, sent), sent), type);
    wrong += get(values, type, i) != expected;
  }
  EXPECT_EQ(wrong, 0) << ranks << " ranks, " << elements << " elements " << base::name_of(type)
                      << " " << base::name_of(sent);
}

}  // namespace

void check_all_gather(Communicator& communicator, bool in_place) {
  const int ranks = communicator.size();
  const int rank = communicator.rank();
  std::vector<Bytes> wholes, shards;
  std::vector<GatherPart> parts;
  int64_t bytes = 0;
  for (const int64_t length : {1, 0, 77, 4096, 100003}) {
    Bytes& whole = wholes.emplace_back(ranks * length);
    Bytes& shard = shards.emplace_back(length);
    for (int64_t i = 0; i < length; ++i) shard[i] = std::byte(rank * 31 + i + length);
    if (in_place) std::copy(shard.begin(), shard.end(), whole.begin() + rank * length);
    bytes += (ranks - 1) * length;
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    std::byte* own = wholes[i].data() + rank * shards[i].size();
    parts.push_back({in_place ? own : shards[i].data(), wholes[i].data(), std::ssize(shards[i])});
  }
  const int64_t sent = communicator.bytes_sent();
  wait_checked(communicator, communicator.begin_all_gather(parts, "weights"), bytes, sent);
  for (size_t part = 0; part < shards.size(); ++part) {
    const int64_t length = std::ssize(shards[part]);
    int wrong = 0;
    for (int64_t i = 0; i < ranks * length; ++i)
      wrong += wholes[part][i] != std::byte(i / length * 31 + i % length + length);
    EXPECT_EQ(wrong, 0) << "part " << part;
  }
}

void check_reduce_scatter(Communicator& communicator) {
  for (const Types& types : all_types())
    for (const bool add : {false, true})
      for (const int64_t elements : {1, 513, 2500})
        check_one_reduce(communicator, elements, elements - communicator.rank() % 2, types, add);
  check_one_reduce(communicator, 0, 0, {DType::f32, DType::f32, DType::f32}, false);
  check_one_reduce(communicator, 300, 0, {DType::f32, DType::f32, DType::f32}, true);
}

void check_reduce_scatter_in_place(Communicator& communicator) {
  const int ranks = communicator.size();
  const int rank = communicator.rank();
  const int64_t elements = 3001;
  for (const Types& types : all_types()) {
    if (base::size_of(types.shard) > base::size_of(types.whole)) continue;
    Bytes whole = values_of(rank, 5, ranks * elements, types.whole);
    std::byte* own = whole.data() + rank * elements * base::size_of(types.whole);
    const Bytes before = whole;
    auto scratch = scratch_for(communicator, ranks * elements);
    const ReducePart parts[] = {
        {whole.data(), own, elements, types.whole, types.shard, types.sent, false, elements}};
    communicator.wait(communicator.begin_reduce_scatter(parts, scratch, "sums in place"));
    const Bytes shard(own, own + elements * base::size_of(types.shard));
    check_shard(shard, rank, ranks, 5, elements, elements, types, false);
    const auto others = own - whole.data();
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + others, whole.begin()));
  }
}

void check_all_reduce(Communicator& communicator) {
  for (const DType type : kTypes)
    for (const DType sent : kTypes)
      for (const int64_t elements : {0, 1, 5, 777, 4099})
        check_one_all_reduce(communicator, elements, type, sent);
}

void check_many_parts(Communicator& communicator) {
  const int ranks = communicator.size();
  const int rank = communicator.rank();
  std::vector<Bytes> sums, wholes, shards;
  std::vector<SumPart> sum_parts;
  std::vector<ReducePart> reduce_parts;
  int64_t elements = 0;
  const Types types{DType::f32, DType::bf16, DType::f32};
  for (int64_t part = 0; part < 400; ++part) {
    const int64_t count = part % 37;
    const DType type = part / 50 % 2 == 0 ? DType::f32 : DType::bf16;
    sums.push_back(values_of(rank, part, count, type));
    sum_parts.push_back({sums.back().data(), count, type, DType::f32});
    wholes.push_back(values_of(rank, part, ranks * count, DType::f32));
    shards.emplace_back(count * 2);
    reduce_parts.push_back({wholes.back().data(), shards.back().data(), count, types.whole,
                            types.shard, types.sent, false, count});
    elements += ranks * count;
  }
  auto scratch = scratch_for(communicator, elements);
  communicator.wait(communicator.begin_all_reduce(sum_parts, scratch, "many"));
  communicator.wait(communicator.begin_reduce_scatter(reduce_parts, scratch, "many"));
  for (int64_t part = 0; part < 400; ++part) {
    const SumPart& sum = sum_parts[part];
    int wrong = 0;
    for (int64_t i = 0; i < sum.elements; ++i)
      wrong += get(sums[part], sum.type, i) !=
               rounded(sum_of(ranks, part, i, sum.type, DType::f32), sum.type);
    EXPECT_EQ(wrong, 0) << "part " << part;
    check_shard(shards[part], rank, ranks, part, sum.elements, sum.elements, types, false);
  }
}

void check_long_parts(Communicator& communicator) {
  const int ranks = communicator.size();
  const int64_t elements = 50001;
  const Types types{DType::bf16, DType::f32, DType::bf16};
  const Bytes whole = values_of(communicator.rank(), 3, ranks * elements, types.whole);
  Bytes shard(elements * 4);
  Bytes sum = values_of(communicator.rank(), 4, elements, DType::f32);
  Pieces scratch(ranks, 1000);
  const ReducePart reduce[] = {{whole.data(), shard.data(), elements, types.whole, types.shard,
                                types.sent, false, elements}};
  const SumPart sums[] = {{sum.data(), elements, DType::f32, DType::f32}};
  communicator.wait(communicator.begin_reduce_scatter(reduce, scratch, "long"));
  const std::vector<int64_t> reduced = std::exchange(scratch.done, {});
  communicator.wait(communicator.begin_all_reduce(sums, scratch, "long"));
  if (ranks > 1) {
    EXPECT_EQ(reduced.size(), 51U);
    EXPECT_EQ(reduced.front(), 1000);
    EXPECT_EQ(reduced.back(), 1);
    EXPECT_EQ(std::ssize(scratch.done), (elements + 1000 * ranks - 1) / (1000 * ranks));
    EXPECT_EQ(scratch.done.back(), (elements % (1000 * ranks) + ranks - 1) / ranks);
  }
  check_shard(shard, communicator.rank(), ranks, 3, elements, elements, types, false);
  int wrong = 0;
  for (int64_t i = 0; i < elements; ++i)
    wrong += get(sum, DType::f32, i) != sum_of(ranks, 4, i, DType::f32, DType::f32);
  EXPECT_EQ(wrong, 0);
}

void check_queue(Communicator& communicator) {
  const int ranks = communicator.size();
  std::vector<std::vector<int>> wholes(20, std::vector<int>(ranks));
  std::vector<Ticket> tickets;
  for (int i = 0; i < 20; ++i) {
    int* own = &wholes[i][communicator.rank()];
    *own = i * 100 + communicator.rank();
    const GatherPart parts[] = {{own, wholes[i].data(), sizeof(int)}};
    tickets.push_back(communicator.begin_all_gather(parts, "queued"));
  }
  communicator.barrier();
  for (int i = 19; i >= 0; --i) {
    communicator.wait(tickets[i]);
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(wholes[i][rank], i * 100 + rank);
  }
}

void check_texts(Communicator& communicator) {
  const int rank = communicator.rank();
  const auto texts =
      communicator.all_gather_text(std::string(rank * 1000, static_cast<char>('a' + rank % 26)));
  ASSERT_EQ(std::ssize(texts), communicator.size());
  for (int other = 0; other < communicator.size(); ++other)
    EXPECT_EQ(texts[other], std::string(other * 1000, static_cast<char>('a' + other % 26)));
  const auto gathered = gather_text(communicator, texts[static_cast<size_t>(rank)]);
  EXPECT_EQ(gathered, rank == 0 ? texts : std::vector<std::string>());
}

// Two by two, in both directions of a mesh, each with work in its queue, then back in all.
void check_split(Communicator& communicator) {
  const int rank = communicator.rank();
  const auto shards = split(communicator, rank / 2, rank);
  const auto replicas = split(communicator, rank % 2, -rank);
  EXPECT_EQ(shards->rank(), rank % 2);
  EXPECT_EQ(replicas->size(), (communicator.size() + 1 - rank % 2) / 2);
  EXPECT_EQ(replicas->rank(), replicas->size() - 1 - rank / 2);
  std::vector<int> first(shards->size()), second(replicas->size());
  const GatherPart first_parts[] = {{&rank, first.data(), sizeof rank}};
  const GatherPart second_parts[] = {{&rank, second.data(), sizeof rank}};
  const Ticket first_ticket = shards->begin_all_gather(first_parts, "shards");
  const Ticket second_ticket = replicas->begin_all_gather(second_parts, "replicas");
  communicator.barrier();
  replicas->wait(second_ticket);
  shards->wait(first_ticket);
  for (int i = 0; i < shards->size(); ++i) EXPECT_EQ(first[i], rank / 2 * 2 + i);
  for (int i = 0; i < replicas->size(); ++i)
    EXPECT_EQ(second[i], rank % 2 + 2 * (replicas->size() - 1 - i));
  check_one_all_reduce(*split(*replicas, 0, replicas->rank()), 0, DType::f32, DType::f32);
}

void check_all(Communicator& communicator) {
  communicator.set_step(1);
  check_all_gather(communicator, false);
  check_all_gather(communicator, true);
  check_reduce_scatter(communicator);
  check_reduce_scatter_in_place(communicator);
  check_all_reduce(communicator);
  check_many_parts(communicator);
  check_long_parts(communicator);
  check_queue(communicator);
  check_texts(communicator);
  if (communicator.size() > 1) check_split(communicator);
}

}  // namespace snug::comm
