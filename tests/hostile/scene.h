// What is disturbed: a command that works in a folder of its own, the one that a user gives after a
// disturbance, and what must be there after it, whatever happened before.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "../base/temporary_folder.h"
#include "traced_run.h"

namespace snug::hostile {

struct Scene {
  std::string name;
  // What lies in the folder before, made by commands that must succeed.
  std::function<void(const std::filesystem::path& folder)> prepare;
  std::vector<std::string> words;  // of snug; FOLDER stands for the folder
  std::vector<std::string> again;
  std::vector<std::string> results;    // files below the folder that end with the same bits
  std::vector<std::string> kept;       // files that no run may touch
  bool has_metrics = false;            // run/metrics.jsonl, without what a clock wrote
  bool refuses_what_is_there = false;  // `again` is an error where the results are there
};

const std::vector<Scene>& scenes();

// The words with the folder in place of the first FOLDER of each.
std::vector<std::string> at(const std::filesystem::path& folder, std::vector<std::string> words);

// Runs snug; throws where it fails.
void must_succeed(const std::vector<std::string>& words);

// A tiny model of random weights, a tokenizer and data: FOLDER/model, FOLDER/data.jsonl.
void make_model(const std::filesystem::path& folder);

// One scene, prepared and run once without a disturbance.
class Stage {
 public:
  explicit Stage(const Scene& scene);

  // Calls of the run that nothing disturbed.
  const std::vector<FileCall>& calls() const { return calls_; }
  // A run from the prepared folder.
  TracedRun run(const Disturbance& disturbance);
  // What is wrong with the results in the folder now; empty where they are as they must be.
  std::string difference() const;
  // Gives the command that follows; what is wrong with its end or its results, or what it left of
  // the run before.
  std::string go_on();
  // As seen from the folder: "run/checkpoint-2/optimizer.safetensors".
  std::string name_of(const std::filesystem::path& path) const;
  // "snug: error: " and a name of a file of the folder in one line.
  std::string difference_of_message(const Ended& end) const;

 private:
  std::string leftover() const;
  using Contents = std::map<std::string, std::string>;
  std::filesystem::path folder() const { return work_ / "folder"; }
  Command command(const std::vector<std::string>& words) const;
  Contents contents(const std::vector<std::string>& names) const;
  Contents results() const;

  const Scene& scene_;
  testing::TemporaryFolder work_;  // folder, and its state before
  testing::TemporaryFolder streams_;
  std::vector<FileCall> calls_;
  Contents expected_;
  Contents kept_;
};

}  // namespace snug::hostile
