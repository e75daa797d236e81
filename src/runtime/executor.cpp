#include "runtime/executor.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "program/kind.h"

namespace snug::runtime {
namespace {

using backends::Buffer;
using program::Program;
using program::Space;
using program::Tensor;
using program::TensorId;

std::array<int64_t, program::Shape::kMaxRank> strides_of(const Tensor& tensor) {
  if (tensor.is_view()) return tensor.view.strides;
  return program::dense_strides(tensor.shape);
}

// Buffers and what the backend prepared for one operation.
struct Resolved {
  std::vector<Buffer> buffers;  // reads, writes, updates
  std::unique_ptr<backends::Prepared> prepared;
  backends::Invocation invocation;
};

// Operations [begin, end) of a program, which are recorded together or not at all.
struct Stretch {
  size_t begin;
  size_t end;
  bool depends_on_batch;
  std::unique_ptr<backends::Recording> recording;  // null: they are run one by one
};

// How much of it is queued depends on the batch: Invocation::extent.
bool depends_on_batch(const program::Operation& operation) {
  return !program::traits_of(operation).extent.empty();
}

// A recording ends what it begins: no copy is under way where one stretch ends.
std::vector<Stretch> stretches_of(const Program& program) {
  std::vector<Stretch> stretches;
  int64_t under_way = 0;
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const bool depends = depends_on_batch(program.operations[i]);
    if (stretches.empty() || stretches.back().depends_on_batch || depends) {
      SNUG_CHECK(under_way == 0, "{} copies are under way at operation {} of {}", under_way, i,
                 program.name);
      stretches.push_back({i, i, depends, nullptr});
    }
    stretches.back().end = i + 1;
    const program::Traits& traits = program::traits_of(program.operations[i]);
    under_way += traits.begins_copy ? 1 : 0;
    under_way -= traits.ends_copy ? 1 : 0;
  }
  return stretches;
}

struct BatchCopy {
  const Buffer* host;
  const Buffer* device;
};

}  // namespace

struct Executor::Loaded {
  const Program* program = nullptr;
  std::vector<Buffer> tensors;
  std::unordered_map<std::string_view, size_t> by_name;
  std::vector<Resolved> operations;
  std::vector<backends::Invocation> invocations;  // of the operations
  std::vector<BatchCopy> batch;
  std::vector<Stretch> stretches;  // in order; recorded after their first run
  bool ran = false;
  bool is_recorded = false;  // as far as the backend does

  // The host side of what says how much an operation has to do; without data where there is none.
  Buffer extent_of(const program::Operation& operation) const {
    const std::string_view operand = program::traits_of(operation).extent;
    if (operand.empty()) return {};
    const Tensor& tensor = program->tensor(find_operand(operation, operand));
    const auto host = by_name.find("host." + tensor.name);
    return host == by_name.end() ? Buffer{} : tensors[host->second];
  }
};

namespace {

void resolve_operation(const Program& program, const program::Operation& operation,
                       const std::vector<Buffer>& tensors, backends::Backend& backend,
                       Resolved& resolved) {
  const auto append = [&](const std::vector<TensorId>& ids) {
    for (const TensorId id : ids) resolved.buffers.push_back(tensors[static_cast<size_t>(id)]);
  };
  append(operation.reads);
  append(operation.writes);
  append(operation.updates);
  const std::span<const Buffer> all(resolved.buffers);
  const size_t reads = operation.reads.size();
  const size_t writes = operation.writes.size();
  resolved.invocation.attributes = &operation.attributes;
  resolved.invocation.reads = all.subspan(0, reads);
  resolved.invocation.writes = all.subspan(reads, writes);
  resolved.invocation.updates = all.subspan(reads + writes);
  if (operation.workspace != program::kNone)
    resolved.invocation.workspace = tensors[static_cast<size_t>(operation.workspace)];
  resolved.prepared = backend.prepare({program, operation});
  resolved.invocation.prepared = resolved.prepared.get();
  resolved.invocation.channel = operation.channel;
}

}  // namespace

Executor::Executor(const plan::Job& job, backends::Backend& backend)
    : job_(job), backend_(backend), uploads_(backend.timeline(1)) {
  std::vector<std::byte*> bases;
  for (size_t space = 0; space < job.layout.spaces.size(); ++space) {
    const int64_t bytes = job.layout.spaces[space].arena_bytes;
    arenas_.push_back(bytes == 0 ? nullptr : backend.allocate(static_cast<Space>(space), bytes));
    bases.push_back(bytes == 0 ? nullptr : arenas_.back()->data());
  }
  for (size_t p = 0; p < job.programs.size(); ++p) {
    const Program& program = job.programs[p];
    auto loaded = std::make_unique<Loaded>();
    loaded->program = &program;
    for (size_t id = 0; id < program.tensors.size(); ++id) {
      const Tensor& tensor = program.tensors[id];
      std::byte* base = bases[static_cast<size_t>(tensor.space)];
      loaded->tensors.push_back(
          {base + job.layout.offsets[p][id], tensor.dtype, tensor.shape, strides_of(tensor)});
      loaded->by_name.emplace(tensor.name, id);
    }
    for (const auto& [name, id] : loaded->by_name)
      if (const auto host = loaded->by_name.find("host." + std::string(name));
          host != loaded->by_name.end())
        loaded->batch.push_back({&loaded->tensors[host->second], &loaded->tensors[id]});
    loaded->operations.resize(program.operations.size());
    for (size_t i = 0; i < program.operations.size(); ++i) {
      resolve_operation(program, program.operations[i], loaded->tensors, backend,
                        loaded->operations[i]);
      loaded->operations[i].invocation.extent = loaded->extent_of(program.operations[i]);
      loaded->invocations.push_back(loaded->operations[i].invocation);
    }
    loaded->stretches = stretches_of(program);
    programs_.push_back(std::move(loaded));
  }
  for (const auto& list : programs_)
    for (const Resolved& operation : list->operations) backend.tune(operation.invocation);
}

Executor::~Executor() = default;

void Executor::run(std::string_view program) {
  Loaded& list = loaded(program);
  if (list.ran && !list.is_recorded && observer_ == nullptr) record(list);
  list.ran = true;
  for (const Stretch& stretch : list.stretches) {
    if (stretch.recording != nullptr && observer_ == nullptr)
      stretch.recording->replay();
    else
      run_operations(list, stretch.begin, stretch.end);
  }
}

void Executor::record(Loaded& list) {
  for (Stretch& stretch : list.stretches)
    if (!stretch.depends_on_batch)
      stretch.recording =
          backend_.record([&] { run_operations(list, stretch.begin, stretch.end); });
  list.is_recorded = true;
}

void Executor::run_operations(const Loaded& list, size_t begin, size_t end) {
  const std::span<const backends::Invocation> all(list.invocations);
  if (observer_ == nullptr) return backend_.run_list(all.subspan(begin, end - begin));
  for (size_t i = begin; i < end; ++i) {
    observer_->before(*list.program, i);
    backend_.run(list.invocations[i]);
    observer_->after(*list.program, i);
  }
}

const Buffer& Executor::tensor(std::string_view program, std::string_view name) const {
  const Loaded& list = loaded(program);
  const auto found = list.by_name.find(name);
  SNUG_CHECK(found != list.by_name.end(), "program {} has no tensor {}", program, name);
  return list.tensors[found->second];
}

const Buffer& Executor::tensor(std::string_view name) const {
  for (const auto& list : programs_) {
    const auto found = list->by_name.find(name);
    if (found == list->by_name.end()) continue;
    SNUG_CHECK(list->program->tensors[found->second].lifetime != program::Lifetime::program,
               "{} lives inside a program", name);
    return list->tensors[found->second];
  }
  SNUG_CHECK(false, "no program has a tensor {}", name);
  std::abort();
}

bool Executor::has(std::string_view name) const {
  return std::any_of(programs_.begin(), programs_.end(),
                     [&](const auto& list) { return list->by_name.contains(name); });
}

void Executor::upload_batch(std::string_view program) {
  for (const BatchCopy& copy : loaded(program).batch)
    backend_.queue_copy(copy.device->data, copy.host->data, copy.host->bytes());
  uploads_->mark(0);
}

int64_t Executor::arena_bytes(program::Space space) const {
  const auto& arena = arenas_[static_cast<size_t>(space)];
  return arena == nullptr ? 0 : arena->bytes();
}

std::vector<bool> Executor::ran() const {
  std::vector<bool> result;
  for (const auto& list : programs_)
    result.push_back(list->ran || list->program->operations.empty());
  return result;
}

Executor::Loaded& Executor::loaded(std::string_view program) const {
  for (const auto& list : programs_)
    if (list->program->name == program) return *list;
  SNUG_CHECK(false, "the job has no program {}", program);
  std::abort();
}

void Executor::write_scalar(std::string_view name, const void* value, int64_t bytes) {
  const Buffer& buffer = tensor(name);
  SNUG_CHECK_EQ(buffer.bytes(), bytes);
  backend_.write_value(buffer.data, value, bytes);
}

void Executor::read_scalar(std::string_view name, void* value, int64_t bytes) {
  const Buffer& buffer = tensor(name);
  SNUG_CHECK_EQ(buffer.bytes(), bytes);
  backend_.copy(value, buffer.data, bytes);
}

}  // namespace snug::runtime
