#include "prepared_operation.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>

namespace snug::bench {
namespace {

constexpr size_t kAlignment = 64;

void fill_random(const backends::Buffer& buffer) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  for (int64_t i = 0; i < buffer.elements(); ++i) {
    const float value = uniform(random);
    if (buffer.dtype == base::DType::f32) buffer.as<float>()[i] = value;
    if (buffer.dtype == base::DType::bf16)
      buffer.as<base::BFloat16>()[i] = base::to_bfloat16(value);
    if (buffer.dtype == base::DType::i32) buffer.as<int32_t>()[i] = 0;
  }
}

}  // namespace

void PreparedOperation::Released::operator()(std::byte* memory) const { std::free(memory); }

PreparedOperation::Memory PreparedOperation::reserve(int64_t bytes) {
  const size_t rounded = (static_cast<size_t>(bytes) + kAlignment) / kAlignment * kAlignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  std::fill_n(memory, rounded, std::byte{0});
  return Memory(memory);
}

program::TensorId tensor(program::Builder& builder, const program::Shape& shape,
                         program::DType type) {
  program::Tensor result;
  result.name = std::to_string(builder.program().tensors.size());
  result.shape = shape;
  result.dtype = type;
  return builder.add(std::move(result));
}

PreparedOperation::PreparedOperation(program::Program program, int threads)
    : program_(std::move(program)), backend_(backends::open_backend("cpu", {.threads = threads})) {
  program::Operation& operation = program_.operations[0];
  const program::OperationView view{program_, operation};
  for (size_t id = 0; id < program_.tensors.size(); ++id) {
    memory_.push_back(reserve(program_.tensors[id].bytes()));
    fill_random(buffer(static_cast<program::TensorId>(id)));
  }
  for (const program::TensorId id : operation.reads) reads_.push_back(buffer(id));
  for (const program::TensorId id : operation.writes) writes_.push_back(buffer(id));
  for (const program::TensorId id : operation.updates) updates_.push_back(buffer(id));
  operation.attributes = backend_->decide(view);
  const int64_t scratch = backend_->workspace(view).bytes;
  workspace_ = reserve(scratch);
  operation.workspace = static_cast<program::TensorId>(program_.tensors.size());
  program::Tensor workspace;
  workspace.name = "workspace";
  workspace.dtype = base::DType::u8;
  workspace.shape = {scratch};
  program_.tensors.push_back(std::move(workspace));
  prepared_ = backend_->prepare(view);
  invocation_.attributes = &operation.attributes;
  invocation_.reads = reads_;
  invocation_.writes = writes_;
  invocation_.updates = updates_;
  invocation_.workspace = {workspace_.get(), base::DType::u8, {scratch}, {1, 0, 0, 0}};
  invocation_.prepared = prepared_.get();
}

backends::Buffer PreparedOperation::buffer(program::TensorId id) {
  const program::Tensor& tensor = program_.tensor(id);
  backends::Buffer buffer{memory_[static_cast<size_t>(id)].get(), tensor.dtype, tensor.shape, {}};
  int64_t stride = 1;
  for (int axis = tensor.shape.rank() - 1; axis >= 0; --axis) {
    buffer.strides[static_cast<size_t>(axis)] = stride;
    stride *= tensor.shape[axis];
  }
  return buffer;
}

void PreparedOperation::fill_integers(program::TensorId id, const std::vector<int32_t>& values) {
  std::copy(values.begin(), values.end(), buffer(id).as<int32_t>());
}

void PreparedOperation::fill_floats(program::TensorId id, float value) {
  const backends::Buffer target = buffer(id);
  std::fill_n(target.as<float>(), target.elements(), value);
}

int64_t PreparedOperation::bytes_moved() const {
  int64_t bytes = 0;
  for (const backends::Buffer& buffer : reads_) bytes += buffer.bytes();
  for (const backends::Buffer& buffer : writes_) bytes += buffer.bytes();
  for (const backends::Buffer& buffer : updates_) bytes += 2 * buffer.bytes();
  return bytes;
}

}  // namespace snug::bench
