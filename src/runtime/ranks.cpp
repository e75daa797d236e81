#include "runtime/ranks.h"

#include <exception>
#include <filesystem>
#include <new>
#include <vector>

#include "base/checksum.h"
#include "base/damaged_file.h"
#include "base/error.h"
#include "base/file.h"

namespace snug::runtime {
namespace {

// How a rank's work ended, in the first letter of what it tells the others.
constexpr char kDone = 'd';
constexpr char kDamaged = 'f';
constexpr char kFailed = 'u';

std::string outcome_of(const std::function<void()>& work) {
  const auto failed = [](const std::string& what) { return kFailed + what; };
  try {
    work();
  } catch (const base::DamagedFile& damage) {
    return kDamaged + std::string(damage.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return failed(base::as_user_error(error).what());
  } catch (const std::bad_alloc&) {
    return failed("the system has no more memory; plan for less with device_memory=");
  } catch (const std::exception& error) {
    return failed(error.what());
  }
  return {kDone};
}

// Returns when every rank has the outcomes: one that throws ends its communicator, and then others
// would not learn why.
void await_all(comm::Communicator& ranks) {
  try {
    ranks.barrier();
  } catch (const base::UserError&) {
    // One that had passed it has thrown already.
  }
}

}  // namespace

void on_all_ranks(const comm::Mesh& mesh, const std::function<void()>& work) {
  if (mesh.size() == 1) return work();
  const std::vector<std::string> outcomes = mesh.all->all_gather_text(outcome_of(work));
  // What is no damage goes before damage, for which an earlier checkpoint might be taken.
  for (const char kind : {kFailed, kDamaged})
    for (size_t rank = 0; rank < outcomes.size(); ++rank) {
      if (outcomes[rank].front() != kind) continue;
      await_all(*mesh.all);
      const std::string text = outcomes[rank].substr(1);
      const bool is_own = static_cast<int>(rank) == mesh.rank();
      const std::string what = is_own ? text : fmt::format("rank {}: {}", rank, text);
      if (kind == kDamaged) throw base::DamagedFile(what);
      throw base::UserError(what);
    }
}

bool is_writer(const comm::Mesh& mesh) { return comm::Mesh::rank_in(mesh.replicas) == 0; }

std::string from_first_rank(const comm::Mesh& mesh, std::string_view text) {
  if (mesh.size() == 1) return std::string(text);
  return mesh.all->all_gather_text(mesh.rank() == 0 ? text : std::string_view()).front();
}

uint64_t sum_of_shards(const comm::Mesh& mesh, uint64_t value) {
  if (comm::Mesh::size_of(mesh.shards) == 1) return value;
  uint64_t sum = 0;
  for (const std::string& text : mesh.shards->all_gather_text(base::checksum_text(value)))
    sum += std::stoull(text, nullptr, 16);
  return sum;
}

}  // namespace snug::runtime
