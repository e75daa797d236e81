#include "backends/cuda/library/nccl_library.h"

#include "backends/cuda/library/open_library.h"
#include "base/error.h"

namespace snug::backends::cuda::nccl {
namespace {

constexpr const char* kName = "libnccl.so.2";
constexpr const char* kInstall =
    "Install NVIDIA's package libnccl2, or activate a Python environment that has the package "
    "nvidia-nccl-cu12 or nvidia-nccl-cu13, or put the folder that has it into LD_LIBRARY_PATH";

void check_version(const Functions& functions) {
  constexpr int kOldest = 21800;
  int version = 0;
  if (functions.get_version(&version) != Result::success || version < kOldest)
    base::throw_user_error("{} is version {}.{}, and ranks on cards need 2.18 or later. {}.", kName,
                           version / 10000, version / 100 % 100, kInstall);
}

Functions load_nccl() {
  void* library = open_library(kName);
  if (library == nullptr)
    base::throw_user_error("Several ranks on cards need NCCL, and {} is not found. {}.", kName,
                           kInstall);
  Functions functions;
  find_function(library, "ncclGetVersion", functions.get_version);
  check_version(functions);
  find_function(library, "ncclGetUniqueId", functions.get_unique_id);
  find_function(library, "ncclCommInitRankConfig", functions.comm_init_rank_config);
  find_function(library, "ncclCommFinalize", functions.comm_finalize);
  find_function(library, "ncclCommDestroy", functions.comm_destroy);
  find_function(library, "ncclCommAbort", functions.comm_abort);
  find_function(library, "ncclCommGetAsyncError", functions.comm_get_async_error);
  find_function(library, "ncclGetErrorString", functions.get_error_string);
  find_function(library, "ncclGetLastError", functions.get_last_error);
  find_function(library, "ncclGroupStart", functions.group_start);
  find_function(library, "ncclGroupEnd", functions.group_end);
  find_function(library, "ncclSend", functions.send);
  find_function(library, "ncclRecv", functions.receive);
  find_function(library, "ncclAllGather", functions.all_gather);
  return functions;
}

}  // namespace

const Functions& functions() {
  static const Functions functions = load_nccl();
  return functions;
}

}  // namespace snug::backends::cuda::nccl
