#include "comm/mpi/peer_processes.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>

namespace snug::comm {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(200);

// What a rank tells the others about its process.
struct Place {
  // The boot id and the PID namespace that the process id belongs to: each container of a machine
  // has its own namespace.
  std::array<char, 128> numbering{};
  pid_t process = 0;
};
static_assert(std::is_trivially_copyable_v<Place>);

Place own_place() {
  Place place;
  place.process = getpid();
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> name_space{};
  const ssize_t length = readlink("/proc/self/ns/pid", name_space.data(), name_space.size() - 1);
  // Without both, no process id is known to mean the same here.
  if (!boot.empty() && length > 0)
    std::snprintf(place.numbering.data(), place.numbering.size(), "%s %s", boot.c_str(),
                  name_space.data());
  return place;
}

// A process that ended stays in the system's table until its parent reaps it. Called within
// training steps, so it does not allocate.
bool is_zombie(pid_t process) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(process));
  const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, 256> text{};
  const ssize_t length = read(file, text.data(), text.size());
  close(file);
  // Parses "PID (NAME) STATE ...", where the name may hold any characters.
  const std::string_view line(text.data(), length > 0 ? static_cast<size_t>(length) : 0);
  const size_t end = line.rfind(')');
  return end != std::string_view::npos && end + 2 < line.size() &&
         (line[end + 2] == 'Z' || line[end + 2] == 'X');
}

bool has_ended(pid_t process) {
  return (kill(process, 0) != 0 && errno == ESRCH) || is_zombie(process);
}

}  // namespace

PeerProcesses::PeerProcesses(MPI_Comm world) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  const Place own = own_place();
  std::vector<Place> places(size);
  constexpr int kBytes = sizeof(Place);
  if (MPI_Allgather(&own, kBytes, MPI_BYTE, places.data(), kBytes, MPI_BYTE, world) != MPI_SUCCESS)
    return;
  for (int other = 0; other < size; ++other)
    if (other != rank && own.numbering[0] != '\0' && places[other].numbering == own.numbering)
      others_.push_back({other, places[other].process});
}

std::optional<PeerProcess> PeerProcesses::ended() {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (ended_ || now - looked_ < kInterval) return ended_;
  looked_ = now;
  for (const PeerProcess& other : others_)
    if (!ended_ && has_ended(other.process)) ended_ = other;
  return ended_;
}

}  // namespace snug::comm
