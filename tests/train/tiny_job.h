// A job of a few thousand weights for tests of what surrounds training: the binary trains it at
// hundreds of steps a second.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "../cli/binary_run.h"
#include "../cli/tiny_model.h"

namespace snug::train {

namespace fs = std::filesystem;

class TinyJob {
 public:
  TinyJob() {
    cli::write_tiny_shape(folder_, "shape");
    folder_.write("data.jsonl", cli::kTinyData);
  }

  const testing::TemporaryFolder& folder() const { return folder_; }
  fs::path path(const std::string& name) const { return folder_ / name; }

  // Of two words for one key the last counts.
  std::vector<std::string> words(const std::string& output, const std::string& more = "") const {
    return cli::joined({"train", "model=" + path("shape").string(), "init=random", "method=lora",
                        "data=" + path("data.jsonl").string(), "max_length=256", "threads=1",
                        "output_dir=" + path(output).string()},
                       cli::words_of(more));
  }
  cli::BinaryRun run(const std::string& output, const std::string& more = "") const {
    return cli::run_snug(words(output, more));
  }
  std::string adapter(const std::string& output) const {
    return cli::contents_of(path(output) / "adapter/adapter_model.safetensors");
  }
  // Waits until metrics.jsonl has more than `steps` lines, for a minute at most.
  bool wait_for_steps(const std::string& output, int64_t steps) const {
    for (int tries = 0; tries < 6000; ++tries) {
      const std::string metrics = cli::contents_of(path(output) / "metrics.jsonl");
      if (std::count(metrics.begin(), metrics.end(), '\n') > steps) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

 private:
  testing::TemporaryFolder folder_;
};

// Whether the folder has a checkpoint, of whatever step.
inline bool has_checkpoint(const fs::path& folder) {
  if (!fs::is_directory(folder)) return false;
  for (const auto& entry : fs::directory_iterator(folder))
    if (fs::exists(entry.path() / "trainer_state.json")) return true;
  return false;
}

}  // namespace snug::train
