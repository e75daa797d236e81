#include "backends/cuda/nccl_library.h"

#include "backends/cuda/open_library.h"
#include "base/error.h"

namespace snug::backends::cuda::nccl {
namespace {

constexpr const char* kName = "libnccl.so.2";
constexpr const char* kInstall =
    "Install NVIDIA's package libnccl2, or activate a Python environment that has the package "
    "nvidia-nccl-cu12 or nvidia-nccl-cu13, or put the folder that has it into LD_LIBRARY_PATH";

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(find_function(library, name));
}

void check_version(const Functions& functions) {
  constexpr int kOldest = 21800;
  int version = 0;
  if (functions.get_version(&version) != Result::success || version < kOldest)
    base::throw_user_error("{} is version {}.{}, and ranks on cards need 2.18 or later. {}.", kName,
                           version / 10000, version / 100 % 100, kInstall);
}

Functions load() {
  void* library = open_library(kName);
  if (library == nullptr)
    base::throw_user_error("Several ranks on cards need NCCL, and {} is not found. {}.", kName,
                           kInstall);
  Functions functions;
  find(library, "ncclGetVersion", functions.get_version);
  check_version(functions);
  find(library, "ncclGetUniqueId", functions.get_unique_id);
  find(library, "ncclCommInitRankConfig", functions.comm_init_rank_config);
  find(library, "ncclCommFinalize", functions.comm_finalize);
  find(library, "ncclCommDestroy", functions.comm_destroy);
  find(library, "ncclCommAbort", functions.comm_abort);
  find(library, "ncclCommGetAsyncError", functions.comm_get_async_error);
  find(library, "ncclGetErrorString", functions.get_error_string);
  find(library, "ncclGetLastError", functions.get_last_error);
  find(library, "ncclGroupStart", functions.group_start);
  find(library, "ncclGroupEnd", functions.group_end);
  find(library, "ncclSend", functions.send);
  find(library, "ncclRecv", functions.receive);
  find(library, "ncclAllGather", functions.all_gather);
  return functions;
}

}  // namespace

const Functions& functions() {
  static const Functions functions = load();
  return functions;
}

}  // namespace snug::backends::cuda::nccl
