#include "runtime/loading/load_weights.h"

#include <chrono>

#include "base/seconds_since.h"
#include "formats/folder/tensor_index.h"
#include "models/families/families.h"
#include "models/stored/open_weights.h"
#include "runtime/loading/check_weights.h"
#include "runtime/process/ranks.h"
#include "runtime/storage/perform.h"

namespace snug::runtime {

LoadReport load_weights(const std::filesystem::path& folder, const models::ModelConfig& config,
                        Executor& executor) {
  const auto start = std::chrono::steady_clock::now();
  constexpr auto kProgram = program::ProgramName::load;
  const formats::TensorIndex index = models::open_weights(folder, models::stack_of(config));
  check_weights(index, config);
  const Performed performed =
      perform(kProgram,
              sources_of(index, FileSet::model, "as config.json says", &config, kProgram, executor),
              executor);
  LoadReport report;
  report.bytes_read = performed.bytes_read;
  report.bytes_around = performed.bytes_around;
  report.digest = sum_of_shards(executor.mesh(), performed.digest);
  report.seconds = base::seconds_since(start);
  return report;
}

}  // namespace snug::runtime
