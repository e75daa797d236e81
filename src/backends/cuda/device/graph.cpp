#include "backends/cuda/device/graph.h"

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
  const cudaError_t error = cudaGraphInstantiate(&executable, graph, 0);
  CUDA_CHECK(cudaGraphDestroy(graph));
  constexpr const char* kWhat = "a CUDA graph (SNUG_CUDA_GRAPHS=off leaves them out)";
  CUDA_CHECK_MEMORY(kWhat, error);
  auto made = std::make_unique<Graph>(executable, stream);
  // After the upload nothing is left to be allocated on replay.
  CUDA_CHECK_MEMORY(kWhat, cudaGraphUpload(executable, stream));
  return made;
}

}  // namespace snug::backends::cuda
