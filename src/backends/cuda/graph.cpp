#include "backends/cuda/graph.h"

#include "base/error.h"

namespace snug::backends::cuda {
namespace {

class Graph final : public Recording {
 public:
  Graph(cudaGraphExec_t executable, cudaStream_t stream)
      : executable_(executable), stream_(stream) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() override { cudaGraphExecDestroy(executable_); }

  void replay() override { CUDA_CHECK(cudaGraphLaunch(executable_, stream_)); }

 private:
  cudaGraphExec_t executable_;
  cudaStream_t stream_;
};

}  // namespace

std::unique_ptr<Recording> record_graph(const std::function<void()>& operations,
                                        cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  operations();
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  cudaError_t error = cudaGraphInstantiate(&executable, graph, 0);
  CUDA_CHECK(cudaGraphDestroy(graph));
  // So that nothing is left to be allocated when it is replayed.
  if (error == cudaSuccess) error = cudaGraphUpload(executable, stream);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // takes the error back
    if (executable != nullptr) CUDA_CHECK(cudaGraphExecDestroy(executable));
    base::throw_user_error(
        "the card has no memory left for a CUDA graph, which the plan has kept free; another "
        "program has taken it. Free it, or start without graphs (SNUG_CUDA_GRAPHS=off)");
  }
  CUDA_CHECK(error);
  return std::make_unique<Graph>(executable, stream);
}

}  // namespace snug::backends::cuda
