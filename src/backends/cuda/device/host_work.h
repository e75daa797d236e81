// Operations that are placed on the host while a device does the rest: a separate stream calls the
// host's backend for them, in order. The device continues until it gets work that touches an
// operand of such an operation; that work waits for it. They are never recorded in a graph. One
// thread queues them.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backends/backend.h"
#include "backends/cuda/device/stream.h"

namespace snug::backends::cuda {

// The bytes that operations touch.
class ByteRanges {
 public:
  void add(const Invocation& invocation);
  // Joins adjacent ranges; call it once everything is added.
  void merge();
  // Requires merge().
  bool share(const Buffer& buffer) const;

 private:
  struct Range {
    const std::byte* begin;
    const std::byte* end;
  };
  std::vector<Range> ranges_;
};

class HostWork {
 public:
  // `make_host` is called when the first such operation is prepared.
  explicit HostWork(std::function<std::unique_ptr<Backend>()> make_host);
  HostWork(const HostWork&) = delete;
  HostWork& operator=(const HostWork&) = delete;
  ~HostWork();

  // Refuses an operation that the host's backend does not run, or that needs scratch there. Creates
  // what its runs need of the device; throws UserError where there is no memory for it.
  std::unique_ptr<Prepared> prepare(const program::OperationView& view);
  // The operation begins when all earlier work on `work` is done; returns the stream on which it is
  // queued. Until then the tensors must stay in place. Fails a CHECK where it was not prepared.
  cudaStream_t run(const Invocation& invocation, cudaStream_t work);
  // Makes `stream` wait for operations in progress that share bytes with the given tensors.
  void wait_for(const Invocation& invocation, cudaStream_t stream) const;
  void wait_for(const ByteRanges& touched, cudaStream_t stream) const;
  // Forgets operations that have ended, which need no wait. Must not be called during recording.
  void forget_done();
  // Makes `work` wait for all operations in progress, after which none is. If none is, any thread
  // may call it.
  void join(cudaStream_t work);

  // Rethrows what an operation threw, if it has run by now; after the device is synchronised there
  // is nothing later.
  void check();

  cudaStream_t stream() const { return stream_.get(); }

 private:
  // The argument of a callback from the device's runtime. It stays in place, since the callback may
  // run again, and does not refer to anything owned by the caller of run().
  struct Call {
    Backend* host = nullptr;  // null until the call is first used
    program::Attributes attributes;
    std::vector<Buffer> buffers;
    Invocation invocation;
    Event done;
    std::exception_ptr failure;
  };
  static void perform(void* call);
  // The callback argument of an operation, the same for all its runs.
  Call& call_of(const Invocation& invocation);

  std::function<std::unique_ptr<Backend>()> make_host_;
  std::unique_ptr<Backend> host_;
  Stream stream_;
  Event reached_;  // on the compute stream: an operation may begin
  std::unordered_map<const program::Attributes*, std::unique_ptr<Call>> calls_;  // by operation
  std::vector<const Call*> under_way_;
};

}  // namespace snug::backends::cuda
