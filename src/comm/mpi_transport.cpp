#include "comm/mpi_transport.h"

#include <dlfcn.h>

#include "base/error.h"

namespace snug::comm {
namespace {

namespace fs = std::filesystem;

fs::path library_path(const fs::path& folder) {
  if (!folder.empty()) return folder / kMpiLibrary;
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path packed = binary / "lib" / kMpiLibrary;
  return fs::exists(packed, error) ? packed : binary / kMpiLibrary;
}

}  // namespace

fs::path find_mpi_library(const fs::path& folder) {
  const fs::path path = library_path(folder);
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    base::throw_user_error(
        "Several ranks need MPI, and this snug was built without it: {} is not there. Install MPI "
        "(apt-get install libopenmpi-dev openmpi-bin) and build again.",
        path.string());
  return path;
}

// The library is never closed, since MPI leaves threads and handlers in the process.
std::unique_ptr<Transport> open_mpi_transport(double timeout_seconds, const fs::path& folder) {
  const fs::path path = find_mpi_library(folder);
  // MPI later opens plugins that look for its symbols, so the symbols must be global.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    base::throw_user_error(
        "{} cannot be opened: {}. Is MPI installed (apt-get install openmpi-bin)?", path.string(),
        dlerror());
  const auto open = reinterpret_cast<OpenMpi>(dlsym(library, kOpenMpiName));
  if (open == nullptr)
    base::throw_user_error("{} belongs to another version of snug: build both together",
                           path.string());
  std::string error;
  std::unique_ptr<Transport> transport;
  open(timeout_seconds, &transport, &error);
  if (transport == nullptr) throw base::UserError(error);
  return transport;
}

}  // namespace snug::comm
