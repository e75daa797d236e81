#include "backends/backend.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/error.h"

namespace snug::backends {

std::unique_ptr<Backend> open_backend(std::string_view name, const BackendOptions& options) {
  if (name == "reference") return std::make_unique<reference::ReferenceBackend>(options);
  if (name == "cpu") return std::make_unique<cpu::CpuBackend>(options);
  base::throw_user_error(
      "There is no backend '{}' in this build; there are 'cpu' and 'reference'. Leave the key away "
      "for 'cpu'.",
      name);
}

}  // namespace snug::backends
