// Operations that are placed on the host, next to the device: a stream of their own calls the
// host's backend, in their order. The device goes on meanwhile, until it is given what touches an
// operand of such an operation, which waits for it. It is never recorded in a graph. One thread
// queues it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backends/backend.h"
#include "backends/cuda/device/stream.h"

namespace snug::backends::cuda {

// Bytes that operations touch.
class ByteRanges {
 public:
  void add(const Invocation& invocation);
  // Joins what lies side by side, once all is added.
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

  // Refuses an operation that the host's backend does not run, or that needs scratch there. Makes
  // what its runs take of the device; throws UserError where there is no memory for it.
  std::unique_ptr<Prepared> prepare(const program::OperationView& view);
  // Begins when all that `work` was given is done; returns the stream on which it is queued. The
  // tensors must stay where they are until then. Fails a CHECK where it was not prepared.
  cudaStream_t run(const Invocation& invocation, cudaStream_t work);
  // `stream` waits for those under way that share bytes with the operation's tensors.
  void wait_for(const Invocation& invocation, cudaStream_t stream) const;
  void wait_for(const ByteRanges& touched, cudaStream_t stream) const;
  // What has ended needs no wait. Not while anything is recorded.
  void forget_done();
  // `work` waits for all that is under way, after which nothing is. Where nothing is, any thread
  // may call it.
  void join(cudaStream_t work);

  // Throws what an operation threw that has been called by now; a synchronised device has no other.
  void check();

  cudaStream_t stream() const { return stream_.get(); }

 private:
  // What the device's runtime is given to call: stays where it is, since a graph may call it again,
  // and looks at nothing that the caller of run() owns.
  struct Call {
    Backend* host = nullptr;  // null: it has not been called yet
    program::Attributes attributes;
    std::vector<Buffer> buffers;
    Invocation invocation;
    Event done;
    std::exception_ptr failure;
  };
  static void perform(void* call);
  // The call of an operation: the same for all its runs.
  Call& call_of(const Invocation& invocation);

  std::function<std::unique_ptr<Backend>()> make_host_;
  std::unique_ptr<Backend> host_;
  Stream stream_;
  Event reached_;  // on the stream that computes: an operation may begin
  std::unordered_map<const program::Attributes*, std::unique_ptr<Call>> calls_;  // by operation
  std::vector<const Call*> under_way_;
};

}  // namespace snug::backends::cuda
