#include "backends/cuda/device/host_work.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"

namespace snug::backends::cuda {
namespace {

template <typename F>
bool any_buffer(const Invocation& invocation, F&& f) {
  return std::ranges::any_of(invocation.reads, f) || std::ranges::any_of(invocation.writes, f) ||
         std::ranges::any_of(invocation.updates, f);
}

std::vector<Buffer> buffers_of(const Invocation& invocation) {
  std::vector<Buffer> buffers;
  for (const auto operands : {invocation.reads, invocation.writes, invocation.updates})
    buffers.insert(buffers.end(), operands.begin(), operands.end());
  return buffers;
}

bool share_bytes(const Invocation& a, const Invocation& b) {
  return any_buffer(a, [&](const Buffer& of_a) {
    return any_buffer(b, [&](const Buffer& of_b) { return overlap(of_a, of_b); });
  });
}

}  // namespace

void ByteRanges::add(const Invocation& invocation) {
  for (const auto operands : {invocation.reads, invocation.writes, invocation.updates})
    for (const Buffer& buffer : operands)
      ranges_.push_back({buffer.data, buffer.data + buffer.spanned_bytes()});
  const Buffer& scratch = invocation.workspace;
  if (scratch.data != nullptr) ranges_.push_back({scratch.data, scratch.data + scratch.bytes()});
}

void ByteRanges::merge() {
  std::ranges::sort(ranges_, {}, &Range::begin);
  std::vector<Range> merged;
  for (const Range& range : ranges_)
    if (!merged.empty() && range.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, range.end);
    else
      merged.push_back(range);
  ranges_ = std::move(merged);
}

bool ByteRanges::share(const Buffer& buffer) const {
  const std::byte* const end = buffer.data + buffer.spanned_bytes();
  const auto after = std::ranges::lower_bound(ranges_, end, {}, &Range::begin);
  return after != ranges_.begin() && std::prev(after)->end > buffer.data;
}

HostWork::HostWork(std::function<std::unique_ptr<Backend>()> make_host)
    : make_host_(std::move(make_host)) {}

HostWork::~HostWork() { cudaStreamSynchronize(stream_.get()); }

std::unique_ptr<Prepared> HostWork::prepare(const program::OperationView& view) {
  SNUG_CHECK(make_host_ != nullptr, "{} is placed on the host, and there is no backend for it",
             name_of(view.operation.kind()));
  if (host_ == nullptr) host_ = make_host_();
  SNUG_CHECK(host_->runs(view), "the host does not run {}", name_of(view.operation.kind()));
  SNUG_CHECK_EQ(host_->workspace(view).bytes, 0);
  std::unique_ptr<Call>& call = calls_[&view.operation.attributes];
  if (call == nullptr) call = std::make_unique<Call>();
  // In the program the operation has the host's channel; for the host's backend it is computation.
  program::Operation there = view.operation;
  there.channel = program::Channel::compute;
  return host_->prepare({view.program, there});
}

// A thread of the device's runtime calls this, and it must not call the runtime.
void HostWork::perform(void* call) {
  Call& work = *static_cast<Call*>(call);
  try {
    work.host->run(work.invocation);
  } catch (...) {
    work.failure = std::current_exception();
  }
}

HostWork::Call& HostWork::call_of(const Invocation& invocation) {
  const auto found = calls_.find(invocation.attributes);
  SNUG_CHECK(found != calls_.end(), "an operation of the host is run that was not prepared");
  Call& call = *found->second;
  std::vector<Buffer> buffers = buffers_of(invocation);
  // The callback of an earlier run of the same operation may still be pending.
  if (call.host != nullptr && call.attributes == *invocation.attributes &&
      call.invocation.prepared == invocation.prepared &&
      call.invocation.trace == invocation.trace &&
      std::ranges::equal(call.buffers, buffers, {}, &Buffer::data, &Buffer::data))
    return call;
  if (call.host != nullptr) CUDA_CHECK(cudaStreamSynchronize(stream_.get()));
  call.host = host_.get();
  call.attributes = *invocation.attributes;
  call.buffers = std::move(buffers);
  call.invocation = invocation;
  call.invocation.attributes = &call.attributes;
  const std::span<const Buffer> all(call.buffers);
  const size_t reads = invocation.reads.size();
  const size_t writes = invocation.writes.size();
  call.invocation.reads = all.first(reads);
  call.invocation.writes = all.subspan(reads, writes);
  call.invocation.updates = all.subspan(reads + writes);
  call.invocation.view = nullptr;
  call.invocation.bounds = nullptr;
  return call;
}

cudaStream_t HostWork::run(const Invocation& invocation, cudaStream_t work) {
  Call& call = call_of(invocation);
  CUDA_CHECK(cudaEventRecord(reached_.get(), work));
  CUDA_CHECK(cudaStreamWaitEvent(stream_.get(), reached_.get(), 0));
  CUDA_CHECK(cudaLaunchHostFunc(stream_.get(), perform, &call));
  CUDA_CHECK(cudaEventRecord(call.done.get(), stream_.get()));
  under_way_.push_back(&call);
  return stream_.get();
}

void HostWork::wait_for(const Invocation& invocation, cudaStream_t stream) const {
  for (const Call* call : under_way_)
    if (share_bytes(call->invocation, invocation))
      CUDA_CHECK(cudaStreamWaitEvent(stream, call->done.get(), 0));
}

void HostWork::wait_for(const ByteRanges& touched, cudaStream_t stream) const {
  for (const Call* call : under_way_)
    if (any_buffer(call->invocation, [&](const Buffer& buffer) { return touched.share(buffer); }))
      CUDA_CHECK(cudaStreamWaitEvent(stream, call->done.get(), 0));
}

// Operations end in order, and one that was queued again ends with its last run.
void HostWork::forget_done() {
  const auto is_under_way = [](const Call* call) {
    const cudaError_t state = cudaEventQuery(call->done.get());
    if (state == cudaSuccess) return false;
    if (state != cudaErrorNotReady) CUDA_CHECK(state);
    cudaGetLastError();  // clears the result, which is not an error
    return true;
  };
  under_way_.erase(under_way_.begin(), std::ranges::find_if(under_way_, is_under_way));
}

void HostWork::check() {
  for (const auto& [operation, call] : calls_)
    if (call->failure) std::rethrow_exception(std::exchange(call->failure, nullptr));
}

// Operations on the host's stream are done in order, so waiting for the last one is enough.
void HostWork::join(cudaStream_t work) {
  if (under_way_.empty()) return;
  CUDA_CHECK(cudaStreamWaitEvent(work, under_way_.back()->done.get(), 0));
  under_way_.clear();
}

}  // namespace snug::backends::cuda
