#include "cuda_long_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "device_memory.h"
#include "program/kinds/kind.h"

namespace snug::backends::test {
namespace {

using cuda_emulator::DeviceAccess;
using program::DType;
using program::Shape;
using program::TensorId;

// Tensors of the program that a buffer stands for: its own base where rows lie apart.
TensorId add_tensor(program::Builder& builder, const Buffer& buffer) {
  program::Tensor tensor;
  tensor.name = fmt::format("t{}", builder.program().tensors.size());
  tensor.shape = buffer.shape;
  tensor.dtype = buffer.dtype;
  if (buffer.shape.rank() < 2 || buffer.strides[0] == buffer.shape[1]) return builder.add(tensor);
  program::Tensor base = tensor;
  base.name += ".base";
  base.shape = {buffer.shape[0], buffer.strides[0]};
  tensor.view = {builder.add(base), 0, {buffer.strides[0], 1}};
  return builder.add(tensor);
}

void store(DType dtype, double value, std::byte* to) {
  const auto put = [&](auto stored) { std::memcpy(to, &stored, sizeof stored); };
  switch (dtype) {
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::bf16:
      return put(base::to_bfloat16(static_cast<float>(value)));
    default:
      SNUG_CHECK(dtype == DType::i32, "no long row of {}", base::name_of(dtype));
      return put(static_cast<int32_t>(value));
  }
}

// Token i of the few in the long row.
int64_t in_long_row(int64_t i) { return i < kEndTokens ? i : kLongTokens - kFewTokens + i; }

}  // namespace

SparseTensor::SparseTensor(const Shape& shape, DType dtype, int64_t stride) {
  buffer_.dtype = dtype;
  buffer_.shape = shape;
  buffer_.strides = {1};
  if (shape.rank() == 2) buffer_.strides = {stride, 1};
  const int64_t bytes = shape.rows() * stride * base::size_of(dtype);
  void* const data =
      cuda_emulator::allocate_device_memory(static_cast<size_t>(std::max<int64_t>(1, bytes)));
  SNUG_CHECK(data != nullptr, "no address space for {} bytes", bytes);
  buffer_.data = static_cast<std::byte*>(data);
}

SparseTensor::~SparseTensor() {
  if (buffer_.data != nullptr) cuda_emulator::free_device_memory(buffer_.data);
}

std::byte* SparseTensor::at(int64_t row, int64_t column) const {
  const int64_t stride = buffer_.shape.rank() == 2 ? buffer_.strides[0] : 0;
  return buffer_.data + (row * stride + column) * base::size_of(buffer_.dtype);
}

std::vector<std::byte> SparseTensor::bytes(int64_t row, int64_t column, int64_t count) const {
  const DeviceAccess access;
  return {at(row, column), at(row, column + count)};
}

void SparseTensor::set_bytes(int64_t row, int64_t column, std::span<const std::byte> bytes) {
  const DeviceAccess access;
  std::ranges::copy(bytes, at(row, column));
}

LongRow::DeviceRows LongRow::add(Both both) {
  operands_.push_back(std::move(both));
  return operands_.size() - 1;
}

LongRow::DeviceRows LongRow::by_token(int64_t columns, DType dtype, int64_t gap) {
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < kFewTokens; ++i) pieces.push_back({i, 0, in_long_row(i), 0, columns});
  return add({std::move(pieces),
              {{kFewTokens, columns}, dtype, columns + gap},
              {{kLongTokens, columns}, dtype, columns + gap}});
}

LongRow::DeviceRows LongRow::by_head(int64_t heads, DType dtype) {
  std::vector<Piece> pieces;
  for (int64_t head = 0; head < heads; ++head)
    for (const int64_t token : {int64_t{0}, kEndTokens})
      pieces.push_back({head, token, head, in_long_row(token), kEndTokens});
  return add({std::move(pieces),
              {{heads, kFewTokens}, dtype, kFewTokens},
              {{heads, kLongTokens}, dtype, kLongTokens}});
}

LongRow::DeviceRows LongRow::value_by_token(DType dtype) {
  return add({{{0, 0, 0, 0, kEndTokens}, {0, kEndTokens, 0, in_long_row(kEndTokens), kEndTokens}},
              {{kFewTokens}, dtype, kFewTokens},
              {{kLongTokens}, dtype, kLongTokens}});
}

LongRow::DeviceRows LongRow::shared(const Shape& shape, DType dtype) {
  std::vector<Piece> pieces;
  for (int64_t row = 0; row < shape.rows(); ++row)
    pieces.push_back({row, 0, row, 0, shape.columns()});
  return add({std::move(pieces), {shape, dtype, shape.columns()}, {shape, dtype, shape.columns()}});
}

void LongRow::fill(DeviceRows operand, const Values& values) {
  Both& both = operands_[operand];
  const DType dtype = both.few.buffer().dtype;
  const auto size = static_cast<size_t>(base::size_of(dtype));
  auto value = values.begin();
  for (const Piece& piece : both.pieces) {
    std::vector<std::byte> bytes(static_cast<size_t>(piece.count) * size);
    for (size_t i = 0; i < bytes.size(); i += size) store(dtype, *value++, bytes.data() + i);
    both.few.set_bytes(piece.few_row, piece.few_column, bytes);
    both.whole.set_bytes(piece.whole_row, piece.whole_column, bytes);
  }
}

void LongRow::fill_normal(DeviceRows operand) {
  fill(operand, normal(random_, operands_[operand].few.buffer().elements()));
}

void LongRow::fill_integers(DeviceRows operand, int64_t low, int64_t high) {
  fill(operand, integers(random_, operands_[operand].few.buffer().elements(), low, high));
}

void LongRow::fill_between(DeviceRows operand, int32_t value) {
  const std::vector<int32_t> values(static_cast<size_t>(kLongTokens - kFewTokens), value);
  operands_[operand].whole.set_bytes(0, kEndTokens, std::as_bytes(std::span(values)));
}

void LongRow::set(DeviceRows operand, const std::vector<int32_t>& few,
                  const std::vector<int32_t>& whole) {
  operands_[operand].few.set_bytes(0, 0, std::as_bytes(std::span(few)));
  operands_[operand].whole.set_bytes(0, 0, std::as_bytes(std::span(whole)));
}

void LongRow::run_one(SparseTensor Both::*which, const program::Attributes& attributes,
                      const std::vector<DeviceRows>& reads, const std::vector<DeviceRows>& writes,
                      std::span<const int32_t> extent) {
  program::Builder builder("long row");
  std::vector<Buffer> buffers[2];
  std::vector<TensorId> ids[2];
  for (size_t i = 0; i < 2; ++i)
    for (const DeviceRows operand : i == 0 ? reads : writes) {
      buffers[i].push_back((operands_[operand].*which).buffer());
      ids[i].push_back(add_tensor(builder, buffers[i].back()));
    }
  builder.emit(attributes, ids[0], ids[1]);
  program::Program program = builder.take();
  const program::OperationView view{program, program.operations[0]};
  ASSERT_EQ(program::shape_error(view), "");
  ASSERT_TRUE(backend_.runs(view));
  program.operations[0].attributes = backend_.decide(view);
  program.operations[0].launches = backend_.launches(view);
  const int64_t scratch = backend_.workspace(view).bytes;
  const SparseTensor workspace({scratch}, DType::u8, scratch);
  if (scratch > 0) {
    program::Tensor tensor;
    tensor.name = "workspace";
    tensor.shape = {scratch};
    tensor.dtype = DType::u8;
    program.operations[0].workspace = static_cast<TensorId>(program.tensors.size());
    program.tensors.push_back(tensor);
  }
  const std::unique_ptr<Prepared> prepared = backend_.prepare(view);
  Invocation invocation;
  invocation.attributes = &program.operations[0].attributes;
  invocation.reads = buffers[0];
  invocation.writes = buffers[1];
  invocation.workspace = workspace.buffer();
  invocation.prepared = prepared.get();
  program::BatchBounds bounds;
  for (const auto& [name, rows_of] : program::traits_of(view.operation).extents)
    if (!name.empty() && !extent.empty()) bounds.set(find_operand(view.operation, name), extent);
  invocation.view = &view;
  invocation.bounds = &bounds;
  backend_.run(invocation);
  backend_.synchronise();
}

void LongRow::run(const program::Attributes& attributes, const std::vector<DeviceRows>& reads,
                  const std::vector<DeviceRows>& writes, std::span<const int32_t> extent) {
  run_one(&Both::few, attributes, reads, writes, extent);
  const cuda_emulator::OnlyEnds only_ends(ends_);
  run_one(&Both::whole, attributes, reads, writes, extent);
}

void LongRow::expect_same(DeviceRows operand) const {
  const Both& both = operands_[operand];
  bool is_made = false;
  for (const Piece& piece : both.pieces) {
    const auto few = both.few.bytes(piece.few_row, piece.few_column, piece.count);
    const auto whole = both.whole.bytes(piece.whole_row, piece.whole_column, piece.count);
    EXPECT_TRUE(few == whole) << "operand " << operand << " from (" << piece.whole_row << ", "
                              << piece.whole_column << ") on, SNUG_TEST_SEED=" << test_seed();
    is_made =
        is_made || std::ranges::any_of(few, [](std::byte byte) { return byte != std::byte{0}; });
  }
  EXPECT_TRUE(is_made) << "operand " << operand << " is zeros";
}

}  // namespace snug::backends::test
