// The part of NCCL that Snug calls: the library is opened when ranks on GPUs are connected, and is
// neither linked nor needed to build. Types have the layout of the library's (its binary interface
// has not changed since 2.14); a test compares them with nccl.h where that is installed. The
// emulator of tests/backends/cuda_emulator has its own functions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace snug::backends::cuda::nccl {

struct Communicator;  // the library's own type

enum class Result : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7
};

enum class Type : int { u8 = 1 };

struct UniqueId {
  static constexpr size_t kBytes = 128;
  char bytes[kBytes];
};

// The fields of version 2.14; later versions treat missing fields as not set.
struct Config {
  size_t size = 20;  // without the padding that the compiler adds at the end
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;  // calls do not block: long ones return `in progress` and are then polled
};

// The names are those of nccl.h without their prefix.
struct Functions {
  Result (*get_version)(int* version) = nullptr;
  Result (*get_unique_id)(UniqueId* id) = nullptr;
  Result (*comm_init_rank_config)(Communicator** communicator, int ranks, UniqueId id, int rank,
                                  Config* config) = nullptr;
  Result (*comm_finalize)(Communicator* communicator) = nullptr;
  Result (*comm_destroy)(Communicator* communicator) = nullptr;
  Result (*comm_abort)(Communicator* communicator) = nullptr;
  Result (*comm_get_async_error)(Communicator* communicator, Result* error) = nullptr;
  const char* (*get_error_string)(Result result) = nullptr;
  const char* (*get_last_error)(Communicator* communicator) = nullptr;
  Result (*group_start)() = nullptr;
  Result (*group_end)() = nullptr;
  Result (*send)(const void* data, size_t count, Type type, int peer, Communicator* communicator,
                 cudaStream_t stream) = nullptr;
  Result (*receive)(void* data, size_t count, Type type, int peer, Communicator* communicator,
                    cudaStream_t stream) = nullptr;
  Result (*all_gather)(const void* shard, void* whole, size_t count, Type type,
                       Communicator* communicator, cudaStream_t stream) = nullptr;
};

// Opens the library on the first call. Throws UserError where it is not found or older than 2.18,
// whose communicators do not yet respect `blocking` above.
const Functions& functions();

}  // namespace snug::backends::cuda::nccl
