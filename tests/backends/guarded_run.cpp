#include "guarded_run.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

#include "base/error.h"
#include "guarded_allocation.h"

namespace snug::backends::test {
namespace {

using program::DType;
using program::TensorId;

void store(std::byte* address, DType type, double value) {
  const auto put = [&](auto stored) { std::memcpy(address, &stored, sizeof(stored)); };
  switch (type) {
    case DType::f64:
      return put(value);
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::bf16:
      return put(base::to_bfloat16(static_cast<float>(value)));
    case DType::f16:
      return put(base::to_float16(static_cast<float>(value)));
    case DType::i64:
      return put(static_cast<int64_t>(value));
    case DType::i32:
      return put(static_cast<int32_t>(value));
    case DType::u8:
      return put(static_cast<uint8_t>(value));
  }
}

template <typename Stored>
Stored get(const std::byte* address) {
  Stored stored;
  std::memcpy(&stored, address, sizeof(stored));
  return stored;
}

double load(const std::byte* address, DType type) {
  switch (type) {
    case DType::f64:
      return get<double>(address);
    case DType::f32:
      return get<float>(address);
    case DType::bf16:
      return base::to_float(get<base::BFloat16>(address));
    case DType::f16:
      return base::to_float(get<base::Float16>(address));
    case DType::i64:
      return static_cast<double>(get<int64_t>(address));
    case DType::i32:
      return get<int32_t>(address);
    case DType::u8:
      return get<uint8_t>(address);
  }
  return 0;
}

// All tensors of a program in memory of their own.
class Memory {
 public:
  Memory(const program::Program& program, bool has_device) : program_(program) {
    using Holds = Allocation::Holds;
    const Holds scratch = has_device ? Holds::scratch_elsewhere : Holds::scratch;
    for (const program::Tensor& tensor : program.tensors)
      allocations_.emplace_back(tensor.is_view() ? 0 : tensor.bytes(),
                                tensor.role == program::Role::workspace ? scratch : Holds::values);
  }

  Buffer buffer(TensorId id) {
    const program::Tensor& tensor = program_.tensor(id);
    Buffer buffer;
    buffer.dtype = tensor.dtype;
    buffer.shape = tensor.shape;
    buffer.data = allocation(id).data() + tensor.view.offset * base::size_of(tensor.dtype);
    buffer.strides = tensor.view.strides;
    if (!tensor.is_view()) {
      int64_t stride = 1;
      for (int axis = tensor.shape.rank() - 1; axis >= 0; --axis) {
        buffer.strides[static_cast<size_t>(axis)] = stride;
        stride *= tensor.shape[axis];
      }
    }
    return buffer;
  }

  // Byte offset within the buffer of the element with this row-major index.
  static int64_t byte_offset(const Buffer& buffer, int64_t index) {
    int64_t offset = 0;
    for (int axis = buffer.shape.rank() - 1; axis >= 0; --axis) {
      offset += index % buffer.shape[axis] * buffer.strides[static_cast<size_t>(axis)];
      index /= buffer.shape[axis];
    }
    return offset * base::size_of(buffer.dtype);
  }

  // Calls f(i, element) with the address of each element of the tensor, in row-major order.
  template <typename F>
  void for_each_element(TensorId id, F&& f) {
    const Buffer elements = buffer(id);
    const int64_t count = elements.elements();
    const int64_t size = base::size_of(elements.dtype);
    const bool is_view = program_.tensor(id).is_view();
    for (int64_t i = 0; i < count; ++i)
      f(i, elements.data + (is_view ? byte_offset(elements, i) : i * size));
  }

  void fill(TensorId id, const Values& values) {
    const DType type = program_.tensor(id).dtype;
    SNUG_CHECK_EQ(static_cast<int64_t>(values.size()), program_.tensor(id).shape.elements());
    for_each_element(id, [&](int64_t i, std::byte* element) {
      store(element, type, values[static_cast<size_t>(i)]);
    });
  }

  void poison(TensorId id) {
    const auto size = static_cast<size_t>(base::size_of(program_.tensor(id).dtype));
    for_each_element(id, [&](int64_t, std::byte* element) {
      std::memset(element, std::to_integer<int>(kPoison), size);
    });
  }

  // Everything as it is, to find later what changed.
  std::vector<std::vector<std::byte>> snapshot() const {
    std::vector<std::vector<std::byte>> copies;
    for (const Allocation& allocation : allocations_) copies.push_back(allocation.watched());
    return copies;
  }

  void restore(const std::vector<std::vector<std::byte>>& snapshot) {
    for (size_t i = 0; i < allocations_.size(); ++i) allocations_[i].restore(snapshot[i]);
  }

  std::vector<Allocation>& allocations() { return allocations_; }

  // Names the tensors whose bytes, or guards, changed though none of `written` covers them.
  void find_violations(const std::vector<std::vector<std::byte>>& before,
                       const std::vector<TensorId>& written, std::vector<std::string>& violations) {
    for (size_t i = 0; i < allocations_.size(); ++i) {
      if (!allocations_[i].has_changed(before[i])) continue;
      std::vector<std::byte> expected = before[i];
      for (const TensorId id : written)
        if (static_cast<size_t>(program_.owner(id)) == i) copy_written(id, expected);
      const std::vector<std::byte> now = allocations_[i].watched();
      if (std::memcmp(expected.data(), now.data(), now.size()) == 0) continue;
      const auto [was, is] = std::mismatch(expected.begin(), expected.end(), now.begin());
      violations.push_back(
          fmt::format("byte {} of tensor '{}' ({} bytes) was changed, and nothing may write there",
                      allocations_[i].position(is - now.begin()), program_.tensors[i].name,
                      program_.tensors[i].bytes()));
    }
  }

 private:
  Allocation& allocation(TensorId id) {
    return allocations_[static_cast<size_t>(program_.owner(id))];
  }

  // The elements of a tensor as they are, into a copy of what is watched of its allocation.
  void copy_written(TensorId id, std::vector<std::byte>& copy) {
    Allocation& owner = allocation(id);
    if (owner.is_scratch()) return;
    const program::Tensor& tensor = program_.tensor(id);
    if (!tensor.is_view()) {
      std::copy_n(owner.data(), tensor.bytes(), copy.begin() + static_cast<long>(owner.start()));
      return;
    }
    for_each_element(id, [&](int64_t, const std::byte* element) {
      const auto at = static_cast<long>(owner.start()) + (element - owner.data());
      std::copy_n(element, base::size_of(tensor.dtype), copy.begin() + at);
    });
  }

  const program::Program& program_;
  std::vector<Allocation> allocations_;
};

// The same tensors and guards in the memory of a device that cannot reach the host's. Scratch lies
// there alone: it is poisoned before a run and never read.
class DeviceCopy {
 public:
  DeviceCopy(Backend& backend, Memory& memory) : backend_(backend), memory_(memory) {
    int64_t bytes = 0;
    for (const Allocation& allocation : memory.allocations()) {
      offsets_.push_back(bytes + kGuardBytes);
      const int64_t size = allocation.bytes() + 2 * kGuardBytes;
      bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
    }
    arena_ = backend.allocate(program::Space::device, bytes);
  }

  void upload() {
    for_each([&](std::byte* device, std::span<std::byte> host) {
      backend_.copy(device, host.data(), static_cast<int64_t>(host.size()));
    });
    for (size_t i = 0; i < offsets_.size(); ++i)
      if (const Allocation& allocation = memory_.allocations()[i]; allocation.is_elsewhere())
        poison(arena_->data() + offsets_[i], allocation.bytes());
  }
  void download() {
    for_each([&](const std::byte* device, std::span<std::byte> host) {
      backend_.copy(host.data(), device, static_cast<int64_t>(host.size()));
    });
  }

  // Where a buffer of the tensor `owner` lies on the device.
  Buffer on_device(Buffer buffer, TensorId owner) const {
    const auto index = static_cast<size_t>(owner);
    buffer.data =
        arena_->data() + offsets_[index] + (buffer.data - memory_.allocations()[index].data());
    return buffer;
  }

 private:
  void poison(std::byte* device, int64_t bytes) {
    static const std::vector<std::byte> kPiece(size_t{1} << 20, kPoison);
    for (int64_t done = 0; done < bytes; done += static_cast<int64_t>(kPiece.size()))
      backend_.copy(device + done, kPiece.data(),
                    std::min(bytes - done, static_cast<int64_t>(kPiece.size())));
  }

  template <typename F>
  void for_each(F&& f) {
    for (size_t i = 0; i < offsets_.size(); ++i) {
      Allocation& allocation = memory_.allocations()[i];
      std::byte* device = arena_->data() + offsets_[i];
      f(device - kGuardBytes, allocation.front());
      if (!allocation.values().empty()) f(device, allocation.values());
      f(device + allocation.bytes(), allocation.back());
    }
  }

  Backend& backend_;
  Memory& memory_;
  std::vector<int64_t> offsets_;  // of each tensor
  std::unique_ptr<Arena> arena_;
};

// Whether kernels do not reach the host's memory.
bool has_device(const Backend& backend) { return backend.name() == "cuda"; }

// What an operation's kernels are given, and what becomes of it.
class Placement {
 public:
  Placement(Backend& backend, Memory& memory, const program::Program& program)
      : memory_(memory), program_(program) {
    if (has_device(backend)) device_.emplace(backend, memory);
  }

  Buffer buffer(TensorId id) {
    const Buffer host = memory_.buffer(id);
    return device_ ? device_->on_device(host, program_.owner(id)) : host;
  }
  std::vector<Buffer> buffers(const std::vector<TensorId>& ids) {
    std::vector<Buffer> result;
    for (const TensorId id : ids) result.push_back(buffer(id));
    return result;
  }
  void before_run() {
    if (device_) device_->upload();
  }
  void after_run() {
    if (device_) device_->download();
  }

 private:
  Memory& memory_;
  const program::Program& program_;
  std::optional<DeviceCopy> device_;
};

void add_workspaces(const Backend& backend, program::Program& program) {
  for (program::Operation& operation : program.operations) {
    operation.attributes = backend.decide({program, operation});
    operation.launches = backend.launches({program, operation});
    const int64_t bytes = backend.workspace({program, operation}).bytes;
    if (bytes == 0) continue;
    program::Tensor tensor;
    tensor.name = fmt::format("workspace{}", program.tensors.size());
    tensor.shape = {bytes};
    tensor.dtype = DType::u8;
    tensor.role = program::Role::workspace;
    operation.workspace = static_cast<TensorId>(program.tensors.size());
    program.tensors.push_back(std::move(tensor));
  }
}

// Times what the backend has to choose between, which may touch the operation's tensors and nothing
// else; then everything is as it was.
// `before`: the memory's snapshot.
void tune(Backend& backend, const Invocation& invocation, Placement& placement, Memory& memory,
          const std::vector<std::vector<std::byte>>& before, const program::OperationView& view,
          RunResult& result) {
  placement.before_run();
  backend.tune(invocation);
  backend.synchronise();
  placement.after_run();
  std::vector<TensorId> touched;
  program::for_each_tensor(view.operation, [&](TensorId id) { touched.push_back(id); });
  memory.find_violations(before, touched, result.violations);
  memory.restore(before);
}

void run_operation(Backend& backend, Memory& memory, const program::OperationView& view,
                   const program::BatchBounds* bounds, RunResult& result) {
  const program::Operation& operation = view.operation;
  // A write that shares the bytes of what is read is what runs in place: nothing to poison.
  for (const TensorId id : operation.writes) {
    const bool in_place = std::any_of(
        operation.reads.begin(), operation.reads.end(),
        [&](TensorId read) { return memory.buffer(read).data == memory.buffer(id).data; });
    if (!in_place) memory.poison(id);
  }
  Placement placement(backend, memory, view.program);
  const std::vector<Buffer> reads = placement.buffers(operation.reads);
  const std::vector<Buffer> writes = placement.buffers(operation.writes);
  const std::vector<Buffer> updates = placement.buffers(operation.updates);
  const std::unique_ptr<Prepared> prepared = backend.prepare(view);
  Invocation invocation;
  invocation.attributes = &operation.attributes;
  invocation.reads = reads;
  invocation.writes = writes;
  invocation.updates = updates;
  if (operation.workspace != program::kNone)
    invocation.workspace = placement.buffer(operation.workspace);
  invocation.prepared = prepared.get();
  invocation.view = &view;
  invocation.bounds = bounds;
  const auto before = memory.snapshot();
  tune(backend, invocation, placement, memory, before, view, result);
  placement.before_run();
  backend.run(invocation);
  backend.synchronise();
  placement.after_run();
  std::vector<TensorId> written = operation.writes;
  written.insert(written.end(), operation.updates.begin(), operation.updates.end());
  if (operation.workspace != program::kNone) written.push_back(operation.workspace);
  memory.find_violations(before, written, result.violations);
}

void collect(Memory& memory, const program::Program& program, TensorId id, RunResult& result) {
  const program::Tensor& tensor = program.tensor(id);
  const auto size = static_cast<size_t>(base::size_of(tensor.dtype));
  const auto elements = static_cast<size_t>(tensor.shape.elements());
  Values values(elements);
  std::vector<std::byte> bytes(elements * size);
  memory.for_each_element(id, [&](int64_t i, const std::byte* element) {
    const auto index = static_cast<size_t>(i);
    values[index] = load(element, tensor.dtype);
    std::memcpy(bytes.data() + index * size, element, size);
  });
  result.values[id] = std::move(values);
  result.bytes[id] = std::move(bytes);
}

}  // namespace

RunResult guarded_run(Backend& backend, program::Program program, const Inputs& inputs,
                      const program::BatchBounds* bounds) {
  add_workspaces(backend, program);
  Memory memory(program, has_device(backend));
  for (const auto& [id, values] : inputs) memory.fill(id, values);
  RunResult result;
  for (const program::Operation& operation : program.operations)
    run_operation(backend, memory, {program, operation}, bounds, result);
  for (const program::Operation& operation : program.operations) {
    for (const TensorId id : operation.writes) collect(memory, program, id, result);
    for (const TensorId id : operation.updates) collect(memory, program, id, result);
  }
  return result;
}

Values rounded(Values values, DType type) {
  const auto round = [&](auto as_stored) {
    for (double& value : values) value = as_stored(value);
    return std::move(values);
  };
  const auto narrow = [](double value) { return static_cast<float>(value); };
  // The types of most inputs.
  if (type == DType::f32) return round(narrow);
  if (type == DType::bf16)
    return round([&](double value) { return base::to_float(base::to_bfloat16(narrow(value))); });
  return round([&](double value) {
    std::byte bytes[8];
    store(bytes, type, value);
    return load(bytes, type);
  });
}

}  // namespace snug::backends::test
