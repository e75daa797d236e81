// What ranks do together, as operations of the backends whose tensors lie in the host's memory: on
// threads that are connected as ranks, against sums made here in fp64.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../base/captured_stream.h"
#include "backends/backend.h"
#include "base/dtype.h"
#include "comm/local.h"
#include "program/kinds/kind.h"
#include "program/kinds/transfer/collective.h"
#include "program/kinds/transfer/transfer.h"

namespace snug::backends {
namespace {

using program::AllGather;
using program::AllReduce;
using program::DType;
using program::Program;
using program::ReduceScatter;
using program::Shape;
using program::Tensor;
using program::TensorId;

// Elements of a rank, and of the tensor that they are of: the last rank's are padded.
constexpr int64_t kPart = 512;
constexpr int64_t kPadding = 100;

// One operation and its await, with the tensors of one rank.
struct OneCollective {
  Program program;
  std::vector<std::vector<std::byte>> memory;

  TensorId add(const std::string& name, DType type, int64_t elements) {
    Tensor tensor;
    tensor.name = name;
    tensor.shape = {elements};
    tensor.dtype = type;
    program.tensors.push_back(tensor);
    memory.emplace_back(static_cast<size_t>(tensor.bytes()));
    return static_cast<TensorId>(program.tensors.size() - 1);
  }

  void set(TensorId id, int64_t i, float value) {
    std::byte* const at = memory[static_cast<size_t>(id)].data();
    if (program.tensor(id).dtype == DType::f32)
      reinterpret_cast<float*>(at)[i] = value;
    else
      reinterpret_cast<base::BFloat16*>(at)[i] = base::to_bfloat16(value);
  }
  float get(TensorId id, int64_t i) const {
    const std::byte* const at = memory[static_cast<size_t>(id)].data();
    if (program.tensor(id).dtype == DType::f32) return reinterpret_cast<const float*>(at)[i];
    return base::to_float(reinterpret_cast<const base::BFloat16*>(at)[i]);
  }

  Buffer buffer(TensorId id) {
    const Tensor& tensor = program.tensor(id);
    return {memory[static_cast<size_t>(id)].data(), tensor.dtype, tensor.shape, {1}};
  }

  // Begins it, and waits for it by an await.
  void run(Backend& backend) {
    program::Operation& operation = program.operations.front();
    operation.channel = program::Channel::interconnect;
    ASSERT_EQ(program::shape_error({program, operation}), "");
    if (const program::Workspace scratch = backend.workspace({program, operation});
        scratch.bytes > 0)
      operation.workspace = add("scratch", DType::u8, scratch.bytes);
    program::Operation await;
    await.attributes = program::Await{.in_place = operation.reads.empty()};
    await.reads = operation.reads;
    await.updates = operation.writes.empty() ? operation.updates : operation.writes;
    for (const program::Operation* each : {&std::as_const(operation), &std::as_const(await)}) {
      const program::OperationView view{program, *each};
      std::vector<Buffer> buffers;
      for (const auto* ids : {&each->reads, &each->writes, &each->updates})
        for (const TensorId id : *ids) buffers.push_back(buffer(id));
      const std::span<const Buffer> all(buffers);
      Invocation invocation;
      invocation.attributes = &each->attributes;
      invocation.view = &view;
      invocation.channel = each->channel;
      invocation.reads = all.first(each->reads.size());
      invocation.writes = all.subspan(each->reads.size(), each->writes.size());
      invocation.updates = all.last(each->updates.size());
      if (each->workspace != program::kNone) invocation.workspace = buffer(each->workspace);
      backend.run(invocation);
    }
  }
};

// A value that a rank gives: exact in bf16, so that sums are too.
float given(int rank, int64_t i) {
  return static_cast<float>((i * 7 + rank * 13) % 31 - 15) / 8.0F;
}

class Collectives : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  // Runs f(rank, backend) on a thread for each rank.
  static void on_ranks(const std::function<void(int, Backend&)>& f) {
    const auto& [name, ranks] = GetParam();
    comm::LocalGroup group(ranks, {.timeout = std::chrono::seconds(20)});
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank, name = std::string(name)] {
        const auto communicator = group.communicator(rank);
        const comm::Mesh mesh{.all = communicator.get(), .shards = communicator.get()};
        const auto backend = open_backend(name, {.threads = 1, .mesh = &mesh});
        f(rank, *backend);
      });
    for (std::thread& thread : threads) thread.join();
  }
  static int32_t ranks() { return std::get<1>(GetParam()); }
};

TEST_P(Collectives, GatherEveryPart) {
  for (const bool in_place : {false, true})
    on_ranks([&](int rank, Backend& backend) {
      OneCollective job;
      const TensorId whole = job.add("whole", DType::bf16, kPart * ranks());
      const TensorId part = in_place ? whole : job.add("part", DType::bf16, kPart);
      for (int64_t i = 0; i < kPart; ++i)
        job.set(part, in_place ? rank * kPart + i : i, given(rank, i));
      program::Operation operation;
      operation.attributes = AllGather{.ranks = ranks(), .in_place = in_place};
      if (!in_place) operation.reads = {part};
      (in_place ? operation.updates : operation.writes) = {whole};
      job.program.operations = {operation};
      job.run(backend);
      for (int64_t i = 0; i < kPart * ranks(); ++i)
        ASSERT_EQ(job.get(whole, i), given(static_cast<int>(i / kPart), i % kPart)) << i;
    });
}

double sum_of_ranks(int32_t ranks, int64_t i) {
  double sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += given(rank, i);
  return sum;
}

// Of every pair of types, in place and not, added or not; what is after the tensor's end becomes 0.
TEST_P(Collectives, SumPartsOfGradients) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const bool in_place : {false, true})
      for (const bool adds : {false, true}) {
        if (in_place && adds) continue;
        on_ranks([&](int rank, Backend& backend) {
          OneCollective job;
          const TensorId whole = job.add("whole", type, kPart * ranks());
          const TensorId part = in_place ? whole : job.add("part", DType::f32, kPart);
          job.program.tensor(part).whole = Shape{kPart * ranks() - kPadding};
          for (int64_t i = 0; i < kPart * ranks(); ++i) job.set(whole, i, given(rank, i));
          if (adds)
            for (int64_t i = 0; i < kPart; ++i) job.set(part, i, 0.5F);
          program::Operation operation;
          operation.attributes =
              ReduceScatter{.ranks = ranks(), .in_place = in_place, .accumulate = adds};
          if (!in_place) operation.reads = {whole};
          (in_place || adds ? operation.updates : operation.writes) = {part};
          job.program.operations = {operation};
          job.run(backend);
          for (int64_t i = 0; i < kPart; ++i) {
            const int64_t element = rank * kPart + i;
            const bool is_padding = element >= kPart * ranks() - kPadding;
            const double expected =
                is_padding ? 0 : sum_of_ranks(ranks(), element) + (adds ? 0.5 : 0);
            ASSERT_NEAR(job.get(part, in_place ? element : i), expected, 0.02 * std::abs(expected))
                << element;
          }
        });
      }
}

TEST_P(Collectives, SumOnAllRanks) {
  for (const bool sent_bf16 : {false, true})
    on_ranks([&](int rank, Backend& backend) {
      OneCollective job;
      const TensorId first = job.add("first", DType::f32, 777);
      const TensorId second = job.add("second", DType::f32, 1);
      for (int64_t i = 0; i < 777; ++i) job.set(first, i, given(rank, i));
      job.set(second, 0, given(rank, 5));
      program::Operation operation;
      operation.attributes = AllReduce{.ranks = ranks(), .sent_bf16 = sent_bf16};
      operation.updates = {first, second};
      job.program.operations = {operation};
      job.run(backend);
      for (int64_t i = 0; i < 777; ++i)
        ASSERT_EQ(job.get(first, i), static_cast<float>(sum_of_ranks(ranks(), i))) << i;
      ASSERT_EQ(job.get(second, 0), static_cast<float>(sum_of_ranks(ranks(), 5)));
    });
}

// Pieces that need more scratch than was planned, and none that can be.
TEST(SumPieces, ThatDoNotFitAreRefused) {
  const auto backend = open_backend("cpu", {.threads = 1});
  OneCollective job;
  const TensorId whole = job.add("whole", DType::f32, 4000);
  const TensorId part = job.add("part", DType::f32, 2000);
  program::Operation operation;
  operation.channel = program::Channel::interconnect;
  operation.reads = {whole};
  operation.writes = {part};
  const auto in_pieces_of = [&](int64_t elements) {
    operation.attributes = ReduceScatter{.ranks = 2, .piece_elements = elements};
    return program::OperationView{job.program, operation};
  };
  const int64_t scratch = backend->workspace(in_pieces_of(500)).bytes;
  EXPECT_EQ(scratch, 2 * 2 * 500 * 4);
  operation.workspace = job.add("scratch", DType::u8, scratch);
  (void)backend->prepare(in_pieces_of(500));
  (void)backend->prepare(in_pieces_of(499));
  const auto prepare = [&](int64_t elements) {
    return [&, elements] { (void)backend->prepare(in_pieces_of(elements)); };
  };
  EXPECT_TRUE(testing::dies(prepare(512), "asks for 8192 bytes of workspace, planned were 8000"));
  EXPECT_TRUE(testing::dies(prepare(0), "asks for 32000 bytes of workspace, planned were 8000"));
  EXPECT_TRUE(testing::dies(prepare(-1), "sends pieces of less than nothing"));
}

INSTANTIATE_TEST_SUITE_P(, Collectives,
                         ::testing::Combine(::testing::Values("reference", "cpu"),
                                            ::testing::Values(1, 2, 3, 5)),
                         [](const auto& test) {
                           return fmt::format("{}_{}", std::get<0>(test.param),
                                              std::get<1>(test.param));
                         });

}  // namespace
}  // namespace snug::backends
