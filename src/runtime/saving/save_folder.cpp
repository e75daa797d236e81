#include "runtime/saving/save_folder.h"

#include <optional>
#include <string>

#include "backends/backend.h"
#include "formats/folder/directory_transaction.h"
#include "runtime/process/ranks.h"
#include "runtime/saving/save_tensors.h"

namespace snug::runtime {

namespace fs = std::filesystem;
using formats::DirectoryTransaction;

void save_folder(const fs::path& folder, FileSet files, int64_t max_shard_bytes,
                 const FolderWriter& writer, Executor& executor) {
  const comm::Mesh& mesh = executor.mesh();
  const bool is_shared = comm::Mesh::size_of(mesh.shards) > 1;
  std::optional<DirectoryTransaction> transaction;
  on_all_ranks(mesh, [&] {
    if (mesh.rank() == 0) transaction.emplace(folder);
  });
  if (is_shared) {
    const fs::path staging =
        from_first_rank(mesh, transaction ? transaction->staging().string() : "");
    executor.backend().synchronise();
    Saved saved = saved_by(program::ProgramName::save, files, executor);
    write_together(staging, stem_of(files), saved, executor, max_shard_bytes);
  }
  on_all_ranks(mesh, [&] {
    if (!transaction) return;
    (is_shared ? writer.write_config : writer.write_alone)(transaction->staging());
    transaction->commit(DirectoryTransaction::IfExists::replace);
  });
}

}  // namespace snug::runtime
