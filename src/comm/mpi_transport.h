// The messages of ranks that an MPI launcher started. The code that calls MPI is a shared library
// of its own (libsnug_mpi.so), which is opened only where such a launcher is: the binary itself
// needs no MPI.
#pragma once

#include <filesystem>
#include <memory>

#include "comm/transport.h"

namespace snug::comm {

// The one function of the library. Throws nothing: where it makes no transport, it says why.
using OpenMpi = void (*)(double timeout_seconds, std::unique_ptr<Transport>* transport,
                         std::string* error);
inline constexpr const char* kOpenMpiName = "snug_open_mpi_1";
inline constexpr const char* kMpiLibrary = "libsnug_mpi.so";

// Where the library is: in `folder`, else next to the binary or in the folder lib there. Throws
// UserError where it is not.
std::filesystem::path find_mpi_library(const std::filesystem::path& folder = {});

// Begins MPI, once in a process, by the library in `folder`. Throws UserError.
std::unique_ptr<Transport> open_mpi_transport(double timeout_seconds,
                                              const std::filesystem::path& folder = {});

}  // namespace snug::comm
