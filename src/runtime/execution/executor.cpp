#include "runtime/execution/executor.h"
#include "program/ir/tensor_names.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "backends/backend.h"
#include "base/error.h"
#include "plan/job/storage_programs.h"
#include "program/ir/inputs.h"
#include "program/ir/operands.h"
#include "program/kinds/kind.h"
#include "runtime/execution/partitions.h"

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

// The buffers of one operation and what the backend prepared for it.
struct Resolved {
  std::optional<program::OperationView> view;
  std::vector<Buffer> buffers;  // reads, writes, updates
  std::unique_ptr<backends::Prepared> prepared;
  backends::Invocation invocation;
};

// The copies between device and host memory in one partition.
struct HostCopies {
  std::vector<std::string_view> inputs;  // the names of the tensors' host sides
  bool has_results = false;
};

HostCopies host_copies_of(const Program& program, const Partition& partition) {
  HostCopies copies;
  for (size_t i = partition.begin; i < partition.end; ++i) {
    const program::Operation& operation = program.operations[i];
    if (program::traits_of(operation).copying != program::Copying::with_host) continue;
    for (const auto& [source, destination] : copies_of(operation)) {
      const Tensor& from = program.tensor(source);
      if (from.space == Space::device)
        copies.has_results = true;
      else
        copies.inputs.push_back(from.name);
    }
  }
  return copies;
}

bool is_by_runtime(const Program& program) {
  return !program.operations.empty() &&
         program::traits_of(program.operations.front()).performer == program::Performer::runtime;
}

}  // namespace

struct Executor::Loaded {
  const Program* program = nullptr;
  std::optional<program::ProgramKey> key;  // empty only for programs in tests
  size_t index = 0;                        // the program's number in the job
  std::vector<Buffer> tensors;
  std::unordered_map<std::string_view, size_t> by_name;
  program::BatchBounds bounds;
  std::vector<Resolved> operations;
  std::vector<backends::Invocation> invocations;                 // one for each operation
  std::vector<Partition> partitions;                             // in the order of the program
  std::vector<HostCopies> host_copies;                           // one for each partition
  std::vector<std::unique_ptr<backends::Recording>> recordings;  // one per partition; may be null
  bool by_runtime = false;

  // The number of launches that the backend may record; joined operations share the launch of the
  // operation before them.
  int64_t recorded_launches() const {
    int64_t launches = 0;
    for (const Partition& partition : partitions) {
      if (!partition.is_recordable) continue;
      for (size_t i = partition.begin; i < partition.end; ++i)
        if (const program::Operation& operation = program->operations[i]; !operation.joined)
          launches += operation.launches;
    }
    return launches;
  }

  // Finds the host side of each tensor that says how much work an operation has, if it has a host
  // side.
  void find_bounds() {
    for (const program::Operation& operation : program->operations)
      for (const auto& [name, rows_of] : program::traits_of(operation).extents) {
        if (name.empty()) continue;
        const TensorId operand = find_operand(operation, name);
        if (!bounds[operand].empty()) continue;
        const TensorId host = host_side(*program, operand);
        if (host == program::kNone) continue;
        const Buffer& buffer = tensors[static_cast<size_t>(host)];
        bounds.set(operand, {buffer.as<const int32_t>(), static_cast<size_t>(buffer.elements())});
      }
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
  resolved.view.emplace(program::OperationView{program, operation});
  resolved.invocation.view = &*resolved.view;
  resolved.invocation.attributes = &operation.attributes;
  resolved.invocation.reads = all.subspan(0, reads);
  resolved.invocation.writes = all.subspan(reads, writes);
  resolved.invocation.updates = all.subspan(reads + writes);
  if (operation.workspace != program::kNone)
    resolved.invocation.workspace = tensors[static_cast<size_t>(operation.workspace)];
  resolved.prepared = backend.prepare({program, operation});
  resolved.invocation.prepared = resolved.prepared.get();
  resolved.invocation.channel = operation.channel;
  resolved.invocation.joined = operation.joined;
  resolved.invocation.on_host = operation.on_host;
}

}  // namespace

Executor::Executor(const plan::Job& job, backends::Backend& backend, const comm::Mesh* mesh)
    : job_(job),
      backend_(backend),
      mesh_(mesh != nullptr ? *mesh : comm::Mesh{}),
      points_(backend.events(job.programs.size() + 1)) {
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
    loaded->key = program::program_key(program.name);
    loaded->index = p;
    for (size_t id = 0; id < program.tensors.size(); ++id) {
      const Tensor& tensor = program.tensors[id];
      std::byte* base = bases[static_cast<size_t>(tensor.space)];
      const int64_t shard = backend.shard_rank();
      const int64_t apart = shard * tensor.view.rank_step * base::size_of(tensor.dtype);
      loaded->tensors.push_back(
          {base + job.layout.offsets[p][id] + apart, tensor.dtype, tensor.shape, strides_of(tensor),
           shard * std::max(tensor.rank_step, tensor.view.rank_step), tensor.constant});
      loaded->by_name.emplace(tensor.name, id);
    }
    loaded->by_runtime = is_by_runtime(program);
    if (loaded->by_runtime) {
      programs_.push_back(std::move(loaded));
      continue;
    }
    loaded->find_bounds();
    loaded->operations.resize(program.operations.size());
    for (size_t i = 0; i < program.operations.size(); ++i) {
      resolve_operation(program, program.operations[i], loaded->tensors, backend,
                        loaded->operations[i]);
      const bool has_extent = program::traits_of(program.operations[i]).has_extent();
      if (has_extent && backend.takes_extent({program, program.operations[i]}))
        loaded->operations[i].invocation.bounds = &loaded->bounds;
      loaded->invocations.push_back(loaded->operations[i].invocation);
    }
    loaded->partitions =
        partitions_of(program, [&](const auto& view) { return backend.takes_extent(view); });
    for (const Partition& partition : loaded->partitions)
      loaded->host_copies.push_back(host_copies_of(program, partition));
    loaded->recordings.resize(loaded->partitions.size());
    programs_.push_back(std::move(loaded));
  }
  for (const auto& list : programs_)
    for (const Resolved& operation : list->operations) backend.tune(operation.invocation);
  for (const auto& list : programs_) backend.load(list->invocations);
  int64_t launches = 0;
  for (const auto& list : programs_) launches += list->recorded_launches();
  backend.expect_recordings(launches);
  for (const auto& list : programs_) record(*list);
  for (int slot = 0; !backend.host_reaches_device() && slot < plan::kSlots; ++slot)
    window_points_.push_back(backend.events(plan::kStages));
}

Executor::~Executor() = default;

void Executor::run(const program::ProgramKey& program) {
  Loaded& list = loaded(program);
  SNUG_CHECK(!list.by_runtime, "program {} is performed, not run", name_of(program));
  begin_stage(list);
  for (size_t i = 0; i < list.partitions.size(); ++i) {
    run_partition(list, i);
    mark_copies(list, i);
  }
}

std::vector<backends::Trace> Executor::run_traced(const program::ProgramKey& program) {
  Loaded& list = loaded(program);
  SNUG_CHECK(!list.by_runtime, "program {} is performed, not run", name_of(program));
  begin_stage(list);
  std::vector<backends::Trace> traces(list.invocations.size());
  std::vector<backends::Invocation> traced = list.invocations;
  for (size_t i = 0; i < traced.size(); ++i) traced[i].trace = &traces[i];
  const std::span<const backends::Invocation> all(traced);
  for (size_t i = 0; i < list.partitions.size(); ++i) {
    const Partition& partition = list.partitions[i];
    backend_.run_list(all.subspan(partition.begin, partition.end - partition.begin));
    mark_copies(list, i);
  }
  backend_.synchronise();  // host operations write their trace only when they run
  return traces;
}

const program::BatchBounds& Executor::bounds(const program::ProgramKey& program) const {
  return loaded(program).bounds;
}

void Executor::mark_copies(const Loaded& list, size_t partition) {
  if (!list.host_copies[partition].inputs.empty()) points_->mark(list.index);
  if (list.host_copies[partition].has_results) points_->mark(results_copied());
}

void Executor::run_partition(const Loaded& list, size_t index) {
  backends::Recording* recording = list.recordings[index].get();
  if (recording != nullptr && observer_ == nullptr) return recording->replay();
  run_operations(list, list.partitions[index].begin, list.partitions[index].end);
}

void Executor::record(Loaded& list) {
  for (size_t i = 0; i < list.partitions.size(); ++i) {
    const Partition& partition = list.partitions[i];
    if (partition.is_recordable)
      list.recordings[i] =
          backend_.record([&] { run_operations(list, partition.begin, partition.end); });
  }
}

void Executor::run_operations(const Loaded& list, size_t begin, size_t end) {
  const std::span<const backends::Invocation> all(list.invocations);
  if (observer_ == nullptr) return backend_.run_list(all.subspan(begin, end - begin));
  if (observer_->sees_launches()) return run_launches(list, begin, end);
  for (size_t i = begin; i < end; ++i) {
    observer_->before(*list.program, i);
    backend_.run(list.invocations[i]);
    observer_->after(*list.program, i);
  }
}

void Executor::run_launches(const Loaded& list, size_t begin, size_t end) {
  const std::span<const backends::Invocation> all(list.invocations);
  for (size_t first = begin; first < end;) {
    const size_t next = std::min(end, done_with(*list.program, first).last + 1);
    observer_->before(*list.program, first);
    backend_.run_list(all.subspan(first, next - first));
    observer_->after(*list.program, first);
    first = next;
  }
}

const Buffer& Executor::tensor(const program::ProgramKey& program, std::string_view name) const {
  const Loaded& list = loaded(program);
  const auto found = list.by_name.find(name);
  SNUG_CHECK(found != list.by_name.end(), "program {} has no tensor {}", name_of(program), name);
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

bool Executor::has(const program::ProgramKey& program, std::string_view name) const {
  return loaded(program).by_name.contains(name);
}

const Buffer& Executor::tensor(const program::ProgramKey& program, TensorId id) const {
  return loaded(program).tensors[static_cast<size_t>(id)];
}

Executor::Loaded& Executor::loaded(const program::ProgramKey& program) const {
  for (const auto& list : programs_)
    if (list->key == program) return *list;
  SNUG_CHECK(false, "the job has no program {}", name_of(program));
  std::abort();
}

// Stages share the same bytes, including those of their batches on the host.
void Executor::begin_stage(const Loaded& list) const {
  const program::Stage stage = job_.layout.stages[list.index];
  if (stage_ == stage) return;
  if (stage_) backend_.synchronise();
  stage_ = stage;
  ++stages_begun_;
}

void Executor::await_inputs(const program::ProgramKey& program) const {
  begin_stage(loaded(program));
  for (const HostCopies& copies : loaded(program).host_copies)
    for (const std::string_view host_name : copies.inputs) await_input(host_name);
}

void Executor::await_input(std::string_view host_name) const {
  for (const auto& list : programs_)
    if (list->by_name.contains(host_name)) {
      begin_stage(*list);
      points_->wait(list->index);
    }
}

void Executor::write_input(std::string_view name, const void* value, int64_t bytes) {
  const std::string host_name = program::host_name(name);
  const Buffer& buffer = tensor(host_name);
  SNUG_CHECK_EQ(buffer.bytes(), bytes);
  await_input(host_name);
  std::memcpy(buffer.data, value, static_cast<size_t>(bytes));
}

void Executor::read_result(std::string_view name, void* value, int64_t bytes) {
  const std::string host_name = program::host_name(name);
  const Buffer& buffer = tensor(host_name);
  SNUG_CHECK_EQ(buffer.bytes(), bytes);
  const auto list = std::ranges::find_if(
      programs_, [&](const auto& each) { return each->by_name.contains(host_name); });
  SNUG_CHECK(stage_ == job_.layout.stages[(*list)->index],
             "{} is read after another stage began in its bytes", name);
  await_results();
  std::memcpy(value, buffer.data, static_cast<size_t>(bytes));
}

}  // namespace snug::runtime
