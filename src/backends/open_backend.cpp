#include "backends/backend.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/open_cuda.h"
#include "backends/reference/reference_backend.h"
#include "base/error.h"

namespace snug::backends {

std::unique_ptr<Backend> open_backend(std::string_view name, const BackendOptions& options) {
  if (name == "reference") return std::make_unique<reference::ReferenceBackend>(options);
  if (name == "cpu") return std::make_unique<cpu::CpuBackend>(options);
  if (name == "cuda") {
    BackendOptions with_host = options;
    with_host.make_host = [threads = options.threads] {
      return std::make_unique<cpu::CpuBackend>(BackendOptions{.threads = threads});
    };
    return open_cuda(with_host);
  }
  base::throw_user_error(
      "There is no backend '{}'; there are 'cpu', 'cuda' and 'reference'. Leave the key away for "
      "'cpu'.",
      name);
}

}  // namespace snug::backends
