#include "backends/cuda/host_work.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace snug::backends::cuda {
namespace {

template <typename F>
bool any_buffer(const Invocation& invocation, F&& f) {
  return std::ranges::any_of(invocation.reads, f) || std::ranges::any_of(invocation.writes, f) ||
         std::ranges::any_of(invocation.updates, f);
}

// Operands here are whole tensors or dense windows of them.
bool overlap(const Buffer& a, const Buffer& b) {
  return a.data < b.data + b.bytes() && b.data < a.data + a.bytes();
}

bool share_bytes(const Invocation& a, const Invocation& b) {
  return any_buffer(a, [&](const Buffer& of_a) {
    return any_buffer(b, [&](const Buffer& of_b) { return overlap(of_a, of_b); });
  });
}

}  // namespace

HostWork::HostWork(std::function<std::unique_ptr<Backend>()> make_host)
    : make_host_(std::move(make_host)) {
  CUDA_CHECK(cudaEventCreateWithFlags(&reached_, cudaEventDisableTiming));
}

HostWork::~HostWork() {
  cudaEventDestroy(reached_);
  for (const auto& [operation, call] : calls_) cudaEventDestroy(call->done);
}

std::unique_ptr<Prepared> HostWork::prepare(const program::OperationView& view) {
  SNUG_CHECK(make_host_ != nullptr, "{} is placed on the host, and there is no backend for it",
             name_of(view.operation.kind()));
  if (host_ == nullptr) host_ = make_host_();
  SNUG_CHECK(host_->runs(view), "the host does not run {}", name_of(view.operation.kind()));
  SNUG_CHECK_EQ(host_->workspace(view).bytes, 0);
  return host_->prepare(view);
}

// Called by a thread of the device's runtime, which may not be called back from it.
void HostWork::perform(void* call) {
  const Call& work = *static_cast<const Call*>(call);
  work.host->run(work.invocation);
}

void HostWork::run(const Invocation& invocation, cudaStream_t work) {
  auto& call = calls_[invocation.attributes];
  if (call == nullptr) {
    call = std::make_unique<Call>();
    CUDA_CHECK(cudaEventCreateWithFlags(&call->done, cudaEventDisableTiming));
  }
  call->host = host_.get();
  call->invocation = invocation;
  call->invocation.trace = nullptr;
  CUDA_CHECK(cudaEventRecord(reached_, work));
  CUDA_CHECK(cudaStreamWaitEvent(stream_.get(), reached_, 0));
  CUDA_CHECK(cudaLaunchHostFunc(stream_.get(), perform, call.get()));
  CUDA_CHECK(cudaEventRecord(call->done, stream_.get()));
  under_way_.push_back(call.get());
  invocation.note_channel(program::Channel::host);
}

void HostWork::wait_for(const Invocation& invocation, cudaStream_t stream) const {
  for (const Call* call : under_way_)
    if (share_bytes(call->invocation, invocation))
      CUDA_CHECK(cudaStreamWaitEvent(stream, call->done, 0));
}

// Operations on the host's stream are done in their order.
void HostWork::join(cudaStream_t work) {
  if (under_way_.empty()) return;
  CUDA_CHECK(cudaStreamWaitEvent(work, under_way_.back()->done, 0));
  under_way_.clear();
}

}  // namespace snug::backends::cuda
