#include "memory_group.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace snug::hostile {
namespace {

namespace fs = std::filesystem;

bool write_value(const fs::path& path, const std::string& value) {
  std::ofstream stream(path);
  stream << value << std::flush;
  return stream.good();
}

// The parts after the colons of /proc/self/cgroup: "4:memory:/a/b" -> "/a/b".
std::string own_group(std::string_view controller) {
  std::ifstream stream("/proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second != std::string::npos && line.substr(first + 1, second - first - 1) == controller)
      return line.substr(second + 1);
  }
  return "/";
}

// A version of groups: the folder to make one in, and how its limit is said.
struct Version {
  fs::path parent;
  std::vector<std::pair<const char*, std::string>> values;
};

std::vector<Version> versions(int64_t limit_bytes) {
  const std::string limit = std::to_string(limit_bytes);
  const fs::path first = "/sys/fs/cgroup/memory";
  const fs::path second = "/sys/fs/cgroup";
  std::vector<Version> all;
  for (const fs::path& parent : {first, first / own_group("memory").substr(1)})
    all.push_back({parent, {{"memory.limit_in_bytes", limit}}});
  for (const fs::path& parent : {second, second / own_group("").substr(1)})
    all.push_back({parent, {{"memory.max", limit}, {"memory.swap.max", "0"}}});
  return all;
}

}  // namespace

std::unique_ptr<MemoryGroup> MemoryGroup::make(int64_t limit_bytes) {
  static int count = 0;
  for (const Version& version : versions(limit_bytes)) {
    // Without the controller the files of its limits would not be there.
    const fs::path path = version.parent / fmt::format("snug-hostile-{}-{}", ::getpid(), count++);
    std::error_code error;
    if (!fs::create_directory(path, error)) continue;
    std::unique_ptr<MemoryGroup> group(new MemoryGroup(path));
    if (fs::exists(path / version.values[0].first) &&
        write_value(path / version.values[0].first, version.values[0].second)) {
      for (const auto& [name, value] : version.values) write_value(path / name, value);
      return group;
    }
  }
  return nullptr;
}

// The kernel is busy for a moment with what has ended, children of a killed process among it.
MemoryGroup::~MemoryGroup() {
  for (int tries = 0; tries < 200 && ::rmdir(path_.c_str()) != 0; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

int64_t MemoryGroup::kills() const {
  for (const char* name : {"memory.oom_control", "memory.events"}) {
    std::ifstream stream(path_ / name);
    std::string key;
    for (int64_t value = 0; stream >> key >> value;)
      if (key == "oom_kill") return value;
  }
  return 0;
}

}  // namespace snug::hostile
