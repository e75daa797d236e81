#include "bench/memory_update.h"

#include "program/ir/builder.h"
#include "program/kinds/functions.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::bench {
namespace {

using program::AdamW;
using program::DType;

program::Program update_of(int64_t elements) {
  program::Builder builder("memory update");
  const program::Shape shape{elements};
  const auto gradient = builder.activation("gradient", shape, DType::bf16);
  const auto factor = builder.activation("factor", {1}, DType::f32);
  const auto rate = builder.activation("learning_rate", {1}, DType::f32);
  const auto count = builder.activation("step", {1}, DType::i32);
  const auto weight = builder.activation("weight", shape, DType::bf16);
  const auto first = builder.activation("first_moment", shape, DType::f32);
  const auto second = builder.activation("second_moment", shape, DType::f32);
  const auto master = builder.activation("master", shape, DType::f32);
  builder.emit(AdamW{.beta1 = 0.9F, .beta2 = 0.999F, .epsilon = 1e-8F, .has_master = true},
               {gradient, factor, rate, count}, {}, {weight, first, second, master});
  return builder.take();
}

}  // namespace

MemoryUpdate::MemoryUpdate(backends::Backend& backend, int64_t elements)
    : backend_(backend), program_(update_of(elements)) {
  const program::Operation& operation = program_.operations.front();
  reads_ = allocate(operation.reads);
  updates_ = allocate(operation.updates);
  prepared_ = backend_.prepare({program_, operation});
}

std::vector<backends::Buffer> MemoryUpdate::allocate(const std::vector<program::TensorId>& ids) {
  std::vector<backends::Buffer> made;
  for (const program::TensorId id : ids) {
    const program::Tensor& tensor = program_.tensor(id);
    memory_.push_back(backend_.allocate(program::Space::device, tensor.bytes()));
    made.push_back(
        {memory_.back()->data(), tensor.dtype, tensor.shape, program::dense_strides(tensor.shape)});
  }
  return made;
}

void MemoryUpdate::run() {
  const backends::Invocation invocation{.attributes = &program_.operations.front().attributes,
                                        .reads = reads_,
                                        .writes = {},
                                        .updates = updates_,
                                        .workspace = {},
                                        .prepared = prepared_.get()};
  *invocation[AdamW::kFactor].as<float>() = 1.0F;
  *invocation[AdamW::kLearningRate].as<float>() = 1e-3F;
  *invocation[AdamW::kStep].as<int32_t>() = 1;
  backend_.run(invocation);
}

double MemoryUpdate::bytes() const {
  return program::cost({program_, program_.operations.front()}, {}).bytes;
}

}  // namespace snug::bench
