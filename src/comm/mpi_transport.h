// The transport between ranks that an MPI launcher started. The code that calls MPI is a separate
// shared library (libsnug_mpi.so), which is opened only under such a launcher: the binary itself
// does not depend on MPI.
#pragma once

#include <filesystem>
#include <memory>

#include "comm/transport.h"

namespace snug::comm {

// The only function of the library. Does not throw: where it cannot make a transport, it sets
// `error`.
using OpenMpi = void (*)(double timeout_seconds, std::unique_ptr<Transport>* transport,
                         std::string* error);
inline constexpr const char* kOpenMpiName = "snug_open_mpi_1";
inline constexpr const char* kMpiLibrary = "libsnug_mpi.so";

// The path of the library: in `folder`, else next to the binary or in the folder lib there. Throws
// UserError where it is not found.
std::filesystem::path find_mpi_library(const std::filesystem::path& folder = {});

// Initialises MPI with the library in `folder`, once in a process. Throws UserError.
std::unique_ptr<Transport> open_mpi_transport(double timeout_seconds,
                                              const std::filesystem::path& folder = {});

}  // namespace snug::comm
