// What emulated devices were asked to make: memory, streams, events, graphs, and code that is
// loaded when it is first asked for, a kernel's or a library's. On a card each takes memory and may
// be refused. Safe to use from several threads.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace snug::cuda_emulator {

class Creations {
 public:
  static Creations& all() {
    static Creations instance;
    return instance;
  }

  // Notes it. False where it is refused.
  bool make(std::string_view what) {
    const std::lock_guard lock(mutex_);
    return make_noted(what);
  }
  // Of code, by a name of its own: it is made where it is not loaded.
  bool load(std::string_view what, const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (loaded_.contains(name)) return true;
    if (!make_noted(what)) return false;
    loaded_.insert(name);
    return true;
  }

  // From here on all is refused after so many more.
  void refuse_after(uint64_t more) {
    const std::lock_guard lock(mutex_);
    allowed_ = more;
  }
  void refuse_nothing() { refuse_after(std::numeric_limits<uint64_t>::max()); }
  // As in a process that has just begun: no code is loaded.
  void unload_all() {
    const std::lock_guard lock(mutex_);
    loaded_.clear();
  }
  // What was asked for since the last call.
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(made_, {});
  }

 private:
  bool make_noted(std::string_view what) {
    made_.emplace_back(what);
    if (allowed_ == 0) return false;
    if (allowed_ != std::numeric_limits<uint64_t>::max()) --allowed_;
    return true;
  }

  std::mutex mutex_;
  uint64_t allowed_ = std::numeric_limits<uint64_t>::max();
  std::set<std::string> loaded_;
  std::vector<std::string> made_;
};

// Whether the device has memory for it, if it is not loaded.
inline bool load_kernel(const void* kernel) {
  return Creations::all().load("kernel", std::to_string(reinterpret_cast<uintptr_t>(kernel)));
}

}  // namespace snug::cuda_emulator
