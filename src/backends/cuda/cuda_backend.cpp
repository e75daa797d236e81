#include "backends/cuda/cuda_backend.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "backends/cuda/attention/attention_note.h"
#include "backends/cuda/attention/cudnn_attention.h"
#include "backends/cuda/device/arena.h"
#include "backends/cuda/device/graph.h"
#include "backends/cuda/device/hardware_table.h"
#include "backends/cuda/device/kernel_loading.h"
#include "backends/cuda/device/launch_count.h"
#include "backends/cuda/device/stream.h"
#include "backends/cuda/kernels/random_values.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/product/kernels/nf4.h"
#include "backends/cuda/product/matrices.h"
#include "backends/operation_checks.h"
#include "backends/placement.h"
#include "base/available_memory.h"
#include "base/error.h"
#include "program/kinds/dispatch.h"
#include "program/work/graph_memory.h"

namespace snug::backends::cuda {
namespace {

// Calls f(attributes, functions of their kind).
template <typename Result, typename F>
Result ask(const program::Attributes& attributes, F&& f) {
  return program::dispatch_run<Result>(attributes, [&]<typename Struct>(const Struct& concrete) {
    return f(concrete, FunctionsOf<Struct>::kDefined);
  });
}

// An await only waits for its copy: the next operation that uses the copy's bytes waits for the
// host itself.
bool is_await(const Invocation& invocation) {
  return program::traits_of(invocation.attributes->kind()).copying == program::Copying::ends;
}

// A recording that waits for the host's work on its operations' tensors before it is replayed.
class AfterHostWork final : public Recording {
 public:
  AfterHostWork(std::unique_ptr<Recording> graph, ByteRanges touched, CudaContext& context)
      : graph_(std::move(graph)), touched_(std::move(touched)), context_(context) {}

  void replay() override {
    context_.host_work.forget_done();
    context_.host_work.wait_for(touched_, context_.stream.get());
    graph_->replay();
  }

 private:
  std::unique_ptr<Recording> graph_;
  ByteRanges touched_;
  CudaContext& context_;
};

// Calls f(operations of one launch) for each launch of a list.
template <typename F>
void for_each_launch(std::span<const Invocation> invocations, F&& f) {
  while (!invocations.empty()) {
    size_t count = 1;
    while (count < invocations.size() && invocations[count].joined) ++count;
    f(invocations.first(count));
    invocations = invocations.subspan(count);
  }
}

// Fails a CHECK where the operations that are joined from this one on cannot all run in one launch
// here, and where the list begins with a joined operation.
void check_joined(const OperationView& view) {
  const std::optional<size_t> first = position_of(view);
  if (!first) return;
  SNUG_CHECK(*first > 0 || !view.operation.joined, "the first operation of a list is joined");
  if (view.operation.joined) return;
  const size_t joined = program::done_with(view.program, *first).last - *first + 1;
  const size_t most = joined > 1 ? launched_together(view.program, *first) : 1;
  SNUG_CHECK(joined <= most, "{} operations from a {} on are joined, of which a launch does {}",
             joined, program::name_of(view.operation.kind()), most);
}

void require_multiple(const void* address, uintptr_t bytes) {
  SNUG_CHECK(reinterpret_cast<uintptr_t>(address) % bytes == 0, "an address is no multiple of {}",
             bytes);
}

}  // namespace

int count_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();  // clears the result, which is not an error
  return 0;
}

CudaBackend::CudaBackend(const BackendOptions& options)
    : context_(std::make_unique<CudaContext>(options)),
      device_budget_bytes_(options.device_memory_bytes),
      records_(is_on("SNUG_CUDA_GRAPHS")) {
  context_->cublas_lt.set_times(options.chooses_by_timing && is_on("SNUG_CUDA_TIMING"));
  (void)kernels_begin_early();  // reads the environment variable now, so that errors are found
}

CudaBackend::~CudaBackend() = default;

std::string CudaBackend::library_versions() const { return context_->library_versions(); }

int64_t CudaBackend::capacity_bytes(program::Space space) const {
  if (space != program::Space::device) return base::available_memory_bytes();
  const int64_t most = device()->arena_bytes();
  return device_budget_bytes_ > 0 ? std::min(device_budget_bytes_, most) : most;
}

std::optional<program::DeviceFacts> CudaBackend::device() const {
  const DeviceMemory memory = device_memory();
  const Device& card = context_->device;
  return program::DeviceFacts{.name = card.name,
                              .is_here = true,
                              .memory_bytes = memory.total_bytes,
                              .outside_bytes = memory.outside_bytes(),
                              .reserved_bytes = memory.has_arenas ? 0 : kLateBytes,
                              .host_outside_bytes = memory.has_arenas ? 0 : kLateHostBytes,
                              .rates = rates_of(card.name, card.card.compute_capability)};
}

bool CudaBackend::runs(const program::OperationView& view) const {
  return cuda::runs(view, context_->device.card);
}

program::Workspace CudaBackend::workspace(const program::OperationView& view) const {
  return cuda::workspace(view, context_->device.card);
}

// As for a planned GPU, except that the library itself is asked whether it can do what is assigned
// to it, and whether that is right.
program::Attributes CudaBackend::decide(const program::OperationView& view) const {
  const Card& card = context_->device.card;
  const program::Attributes decided = cuda::decide(view, card);
  program::Operation operation = view.operation;
  operation.attributes = decided;
  if (why_cudnn_is_left({view.program, operation}, *context_).empty()) return decided;
  Card without = card;
  without.cudnn = false;
  return cuda::decide(view, without);
}

std::unique_ptr<Arena> CudaBackend::allocate(program::Space space, int64_t bytes) {
  return allocate_arena(space, bytes, context_->stream.get());
}

std::unique_ptr<Prepared> CudaBackend::prepare(const program::OperationView& view) {
  if (!view.operation.on_host) check_runs(view, *this);
  check_placement(view, *this);
  if (view.operation.on_host) return context_->host_work.prepare(view);
  check_joined(view);
  check_awaited_once(view);
  check_strides(view);
  check_workspace(view, workspace(view).bytes, library_versions());
  note_attention(view, *context_);
  return ask<std::unique_ptr<Prepared>>(
      view.operation.attributes, [&](const auto& attributes, const auto& kind) {
        return kind.prepare != nullptr ? kind.prepare(attributes, view, *context_) : nullptr;
      });
}

void CudaBackend::tune(const Invocation& invocation) {
  if (invocation.on_host) return;
  ask<void>(*invocation.attributes, [&](const auto& attributes, const auto& kind) {
    if (kind.tune != nullptr) kind.tune(attributes, invocation, *context_);
  });
}

Choices CudaBackend::choices() const {
  return {context_->cublas_lt.choices().text(), context_->cublas_lt.summary()};
}

std::string CudaBackend::take_choices(std::string_view text, const std::string& file) {
  return context_->cublas_lt.choices().take(text, file);
}

bool CudaBackend::takes_extent(const program::OperationView& view) const {
  return ask<bool>(view.operation.attributes,
                   [](const auto& /*attributes*/, const auto& kind) { return kind.takes_extent; });
}

void CudaBackend::run(const Invocation& invocation) { run_list({&invocation, 1}); }

int32_t CudaBackend::launches(const program::OperationView& view) const {
  return cuda::launches(view, context_->device.card);
}

size_t CudaBackend::launched_together(const program::Program& program, size_t first) const {
  return cuda::launched_together(program, first);
}

void CudaBackend::run_list(std::span<const Invocation> invocations) {
  if (!recorded_) context_->host_work.forget_done();
  for_each_launch(invocations, [&](std::span<const Invocation> together) {
    if (recorded_)
      for (const Invocation& invocation : together) recorded_->add(invocation);
    if (together[0].on_host) {
      SNUG_CHECK(!recorded_, "work on the host is recorded");
      const cudaStream_t host = context_->host_work.run(together[0], context_->stream.get());
      together[0].note_channel(context_->channel_of(host));
      return;
    }
    for (const Invocation& invocation : together)
      if (invocation.channel == program::Channel::compute && !is_await(invocation))
        context_->host_work.wait_for(invocation, context_->stream.get());
    const LaunchCount before = launch_count();
    queue(together);
    note_launches(together[0], before);
  });
}

void CudaBackend::queue(std::span<const Invocation> together) {
  ask<void>(*together[0].attributes, [&](const auto& attributes, const auto& kind) {
    if (together.size() == 1) {
      together[0].note_run();
      return kind.run(attributes, together[0], *context_);
    }
    SNUG_CHECK(kind.run_together != nullptr, "{} operations joined that run one by one",
               together.size());
    kind.run_together(attributes, together, *context_);
  });
}

void CudaBackend::load(std::span<const Invocation> invocations) {
  context_->library_checks.say_notes();
  std::vector<Invocation> all(invocations.begin(), invocations.end());
  // Nothing is known of a batch yet, so kernels for all that the shapes allow are loaded.
  for (Invocation& invocation : all) invocation.bounds = nullptr;
  const KernelLoading loading;
  for_each_launch(all, [&](std::span<const Invocation> together) {
    const bool has_kernels =
        !together[0].on_host &&
        ask<bool>(*together[0].attributes,
                  [](const auto& /*attributes*/, const auto& kind) { return kind.has_kernels; });
    if (has_kernels) queue(together);
  });
}

// Records the launches of the operation that was just run. Programs state none on channels that
// copy.
void CudaBackend::note_launches(const Invocation& invocation, const LaunchCount& before) const {
  using program::Channel;
  const bool may_launch =
      invocation.channel == Channel::compute || invocation.channel == Channel::interconnect;
  if (invocation.trace == nullptr || !may_launch) return;
  const LaunchCount& now = launch_count();
  invocation.note_launches(now.launches - before.launches, now.spared - before.spared);
  if (now.launches > before.launches) invocation.note_channel(context_->channel_of(now.stream));
}

cudaStream_t CudaBackend::joined_stream() {
  context_->host_work.join(context_->stream.get());
  return context_->stream.get();
}

void CudaBackend::expect_recordings(int64_t launches) {
  if (!records_) return;
  const int64_t needed = program::graph_bytes(launches);
  const int64_t left = device_memory().free_bytes;
  if (needed > left)
    base::throw_user_error(
        "CUDA graphs of {} launches take up to {} bytes of the card, and it has {} left. Free "
        "some, "
        "or start without graphs (SNUG_CUDA_GRAPHS=off).",
        launches, needed, left);
}

std::unique_ptr<Recording> CudaBackend::record(const std::function<void()>& operations) {
  if (!records_) return nullptr;
  ByteRanges touched;
  const auto record_all = [&] {
    recorded_.emplace();
    operations();
    touched = *std::exchange(recorded_, std::nullopt);
  };
  // A recording cannot wait for work that was queued before it.
  std::unique_ptr<Recording> graph = record_graph(record_all, joined_stream());
  touched.merge();
  return std::make_unique<AfterHostWork>(std::move(graph), std::move(touched), *context_);
}

void CudaBackend::copy(void* destination, const void* source, int64_t bytes) {
  queue_copy(destination, source, bytes);
  synchronise();
}

void CudaBackend::queue_copy(void* destination, const void* source, int64_t bytes) {
  context_->device.use();
  CUDA_CHECK(cudaMemcpyAsync(destination, source, static_cast<size_t>(bytes), cudaMemcpyDefault,
                             joined_stream()));
}

void CudaBackend::synchronise() {
  CUDA_CHECK(cudaStreamSynchronize(joined_stream()));
  context_->collectives.check();
  context_->host_work.check();
}

int CudaBackend::shard_rank() const { return context_->collectives.shard_rank(); }

std::unique_ptr<DeviceEvents> CudaBackend::events(size_t points) {
  context_->device.use();
  return std::make_unique<CudaEvents>(
      points, context_->stream.get(),
      PointCalls{.before_mark = [this] { joined_stream(); },
                 .after_wait = [this] { context_->collectives.check(); }});
}

void CudaBackend::fill(const Buffer& tensor, const RandomValues& values, int64_t first) {
  Matrix matrix = matrix_of(tensor);
  const Walk walk = walk_flat({&matrix});
  SNUG_CHECK(walk.rows <= 1 && first % kValueGroup == 0, "a weight of {} rows from element {}",
             walk.rows, first);
  make_random_values({walk, matrix.operand, values, first / kValueGroup}, joined_stream());
}

void CudaBackend::quantize_nf4(const Buffer& values, uint8_t* codes, float* absmax) {
  require_multiple(values.data, 16);
  require_multiple(codes, 4);
  context_->device.use();  // also called by the threads that read weights
  cuda::quantize_nf4({{values.data, 0, format_of(values.dtype)}, values.elements(), codes, absmax},
                     joined_stream());
}

}  // namespace snug::backends::cuda
