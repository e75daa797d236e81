// One operation of several ranks and its await, with the tensors of one of them, on any backend.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "backends/backend.h"
#include "base/dtype.h"
#include "program/kinds/kind.h"
#include "program/kinds/transfer/collective.h"
#include "program/kinds/transfer/transfer.h"
#include "program/work/work_list.h"

namespace snug::backends::test {

class OneCollective {
 public:
  // Its tensors begin with values by chance, other ones on each rank.
  explicit OneCollective(int rank) : random_(static_cast<uint32_t>(rank) + 1) {
    program_.operations.emplace_back();
    program_.operations.front().channel = program::Channel::interconnect;
  }

  // f32 or bf16, of both signs and several magnitudes, so that sums are rounded.
  program::TensorId add(program::DType type, int64_t elements) {
    std::normal_distribution<float> values(0, 3);
    const program::TensorId id = add_tensor(type, elements);
    std::vector<std::byte>& bytes = memory_.back();
    for (int64_t i = 0; i < elements; ++i) {
      const float value = values(random_);
      const base::BFloat16 rounded = base::to_bfloat16(value);
      if (type == program::DType::f32)
        std::memcpy(bytes.data() + i * 4, &value, 4);
      else
        std::memcpy(bytes.data() + i * 2, &rounded, 2);
    }
    return id;
  }
  program::Tensor& tensor(program::TensorId id) { return program_.tensor(id); }
  program::Operation& operation() { return program_.operations.front(); }

  // What results() are: elements [first, first + count) of a tensor.
  void expect(program::TensorId id, int64_t first, int64_t count) {
    results_.push_back({id, first, count});
  }
  void expect_all(program::TensorId id) { expect(id, 0, tensor(id).shape.elements()); }

  struct Options {
    bool awaits = true;
    int64_t piece_elements = 0;  // of a sum; 0: as the backend decides
  };
  void run(Backend& backend, const Options& options) {
    ASSERT_EQ(program::shape_error({program_, operation()}), "");
    decide(backend, options.piece_elements);
    if (const int64_t scratch = backend.workspace({program_, operation()}).bytes; scratch > 0)
      operation().workspace = add_tensor(program::DType::u8, scratch);
    operation().launches = backend.launches({program_, operation()});
    const auto prepared = backend.prepare({program_, operation()});
    place(backend);
    trace_ = {};
    run_one(backend, operation(), &trace_);
    program::Operation await;
    await.attributes = program::Await{.in_place = operation().reads.empty()};
    await.reads = operation().reads;
    await.updates = operation().writes.empty() ? operation().updates : operation().writes;
    if (options.awaits) run_one(backend, await);
    for (size_t i = 0; i < memory_.size(); ++i)
      backend.copy(memory_[i].data(), addresses_[i], std::ssize(memory_[i]));
    if (!options.awaits) run_one(backend, await);  // now that it has been looked at
    backend.synchronise();
    arena_.reset();
  }

  std::vector<std::byte> results() const {
    std::vector<std::byte> all;
    for (const Part& part : results_) {
      const auto& bytes = memory_[static_cast<size_t>(part.id)];
      const int64_t width = base::size_of(program_.tensor(part.id).dtype);
      all.insert(all.end(), bytes.begin() + part.first * width,
                 bytes.begin() + (part.first + part.count) * width);
    }
    return all;
  }

  // That the last run did it in the pieces and launches that the program says.
  void expect_traced() const {
    const program::Operation& planned = program_.operations.front();
    EXPECT_EQ(trace_.pieces, program::work_of({program_, planned}, {}).pieces);
    EXPECT_EQ(trace_.launches, planned.launches);
  }

 private:
  void decide(const Backend& backend, int64_t piece_elements) {
    operation().attributes = backend.decide({program_, operation()});
    if (piece_elements == 0) return;
    program::Attributes& attributes = operation().attributes;
    if (auto* scatter = attributes.get_if<program::ReduceScatter>())
      scatter->piece_elements = piece_elements;
    if (auto* reduce = attributes.get_if<program::AllReduce>())
      reduce->piece_elements = piece_elements;
  }

  struct Part {
    program::TensorId id;
    int64_t first;
    int64_t count;
  };

  program::TensorId add_tensor(program::DType type, int64_t elements) {
    program::Tensor tensor;
    tensor.name = fmt::format("t{}", program_.tensors.size());
    tensor.shape = {elements};
    tensor.dtype = type;
    program_.tensors.push_back(tensor);
    memory_.emplace_back(static_cast<size_t>(tensor.bytes()));
    return static_cast<program::TensorId>(program_.tensors.size() - 1);
  }

  // Puts the tensors into the backend's memory.
  void place(Backend& backend) {
    constexpr int64_t kApart = 256;
    int64_t bytes = 0;
    std::vector<int64_t> offsets;
    for (const auto& tensor : memory_) {
      offsets.push_back(bytes);
      bytes += (std::ssize(tensor) + kApart - 1) / kApart * kApart;
    }
    arena_ = backend.allocate(program::Space::device, bytes);
    addresses_.clear();
    for (size_t i = 0; i < memory_.size(); ++i) {
      addresses_.push_back(arena_->data() + offsets[i]);
      backend.copy(addresses_[i], memory_[i].data(), std::ssize(memory_[i]));
    }
  }

  Buffer buffer(program::TensorId id) const {
    const program::Tensor& tensor = program_.tensor(id);
    return {addresses_[static_cast<size_t>(id)], tensor.dtype, tensor.shape, {1}};
  }

  void run_one(Backend& backend, const program::Operation& operation,
               Trace* trace = nullptr) const {
    const program::OperationView view{program_, operation};
    std::vector<Buffer> buffers;
    for (const auto* ids : {&operation.reads, &operation.writes, &operation.updates})
      for (const program::TensorId id : *ids) buffers.push_back(buffer(id));
    const std::span<const Buffer> all(buffers);
    Invocation invocation;
    invocation.attributes = &operation.attributes;
    invocation.view = &view;
    invocation.channel = operation.channel;
    invocation.trace = trace;
    invocation.reads = all.first(operation.reads.size());
    invocation.writes = all.subspan(operation.reads.size(), operation.writes.size());
    invocation.updates = all.last(operation.updates.size());
    if (operation.workspace != program::kNone) invocation.workspace = buffer(operation.workspace);
    backend.run(invocation);
  }

  std::mt19937 random_;
  program::Program program_;
  std::vector<std::vector<std::byte>> memory_;  // what the tensors hold
  std::vector<Part> results_;
  Trace trace_;
  std::unique_ptr<Arena> arena_;
  std::vector<std::byte*> addresses_;
};

}  // namespace snug::backends::test
