// NCCL as far as Snug calls it: the library is opened when ranks on cards are connected, and
// neither linked nor needed to build. Types have the layout of the library's (its binary interface
// has not changed since 2.14); a test compares them with nccl.h where that is installed. The
// emulator of tests/backends/cuda_emulator has functions of its own.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace snug::backends::cuda::nccl {

struct Communicator;  // the library's

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

// The fields are those of version 2.14; later versions take what is missing as not given.
struct Config {
  size_t size = 20;  // without what the compiler adds at the end
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;  // no call waits: what takes long is in progress, and asked for
};

// The names of nccl.h without their prefix.
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

// Opens the library once. Throws UserError where it is not found or older than 2.18, whose
// communicators do not yet hold what is said of blocking above.
const Functions& functions();

}  // namespace snug::backends::cuda::nccl
