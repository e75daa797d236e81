#include "runtime/process/ranks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <new>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/damaged_file.h"
#include "base/error.h"
#include "base/file.h"
#include "comm/transport.h"

namespace snug::runtime {
namespace {

// The first letter of the text that a rank sends to the others: how its work ended. For failures an
// exit code and the error follow.
constexpr char kDone = 'd';
constexpr char kDamaged = 'f';
constexpr char kFailed = 'u';

std::string outcome_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    const bool is_damage = dynamic_cast<const base::DamagedFile*>(&error) != nullptr;
    const comm::Ending ending = ending_of(error);
    return fmt::format("{}{} {}", is_damage ? kDamaged : kFailed, ending.exit_code, ending.text);
  }
  return {kDone};
}

// Joins the errors: "rank 1: no such file; ranks 2 and 3: too little memory". An error of all ranks
// has no numbers.
std::string words_of_all(const std::vector<std::string>& outcomes, char kind) {
  std::vector<std::pair<std::string, std::vector<int>>>
      found;  // an error text, and the ranks that have it
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].front() != kind) continue;
    const std::string text = outcomes[rank].substr(outcomes[rank].find(' ') + 1);
    auto known = std::ranges::find(found, text, [](const auto& entry) { return entry.first; });
    if (known == found.end()) known = found.insert(found.end(), {text, {}});
    known->second.push_back(static_cast<int>(rank));
  }
  if (found.front().second.size() == outcomes.size()) return found.front().first;
  std::vector<std::string> words;
  words.reserve(found.size());
  for (const auto& [text, ranks] : found)
    words.push_back(fmt::format("{}: {}", comm::rank_list(ranks), text));
  return fmt::format("{}", fmt::join(words, "; "));
}

// Returns when every rank has received the outcomes: a rank that throws stops its communicator,
// after which the others could not receive them.
void await_all(comm::Communicator& ranks) {
  try {
    ranks.barrier();
  } catch (const base::UserError&) {
    // A rank that had passed the barrier has already thrown.
  }
}

}  // namespace

comm::Ending ending_of(const std::exception& error) {
  using Cause = comm::Ending::Cause;
  if (const auto* other = dynamic_cast<const comm::OtherRankError*>(&error))
    return {other->what(), other->exit_code(), other->was_told() ? Cause::told : Cause::missing};
  if (const auto* mistake = dynamic_cast<const base::UserError*>(&error))
    return {mistake->what(), mistake->exit_code()};
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return ending_of(base::as_user_error(*file));
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {"the system has no more memory; plan for less with device_memory=", 1};
  return {error.what(), 1};
}

void on_all_ranks(const comm::Mesh& mesh, const std::function<void()>& work) {
  if (mesh.size() == 1) return work();
  const std::vector<std::string> outcomes = mesh.all->all_gather_text(outcome_of(work));
  // Other failures take precedence over damage, after which the caller might try an earlier
  // checkpoint.
  for (const char kind : {kFailed, kDamaged}) {
    const auto failed = std::ranges::find(outcomes, kind, [](const auto& text) { return text[0]; });
    if (failed == outcomes.end()) continue;
    await_all(*mesh.all);
    const std::string what = words_of_all(outcomes, kind);
    if (kind == kDamaged) throw base::DamagedFile(what);
    throw base::UserError(what, {}, std::stoi(failed->substr(1)));
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
