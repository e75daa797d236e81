#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "backends/backend.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/open_cuda.h"
#include "backends/reference/reference_backend.h"
#include "base/error.h"
#include "formats/recipe/choices.h"

namespace snug::backends {

using formats::BackendName;

std::unique_ptr<Backend> open_backend(std::string_view word, const BackendOptions& options) {
  const std::optional<BackendName> name = base::from_word<BackendName>(word);
  if (!name)
    base::throw_user_error("There is no backend '{}'; there are {}. Leave the key away for '{}'.",
                           word, fmt::join(base::all_words<BackendName>(), ", "),
                           base::word_of(BackendName::cpu));
  return open_backend(*name, options);
}

std::unique_ptr<Backend> open_backend(BackendName name, const BackendOptions& options) {
  if (name == BackendName::reference) return std::make_unique<reference::ReferenceBackend>(options);
  if (name == BackendName::cpu) return std::make_unique<cpu::CpuBackend>(options);
  BackendOptions with_host = options;
  with_host.make_host = [threads = options.threads] {
    return std::make_unique<cpu::CpuBackend>(BackendOptions{.threads = threads});
  };
  return open_cuda(with_host);
}

}  // namespace snug::backends
