// A program of the user's that rewards answers (exec:PROGRAM). It is started once, reads a line of
// JSON for each answer and writes a line for each (docs/rewards.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/process/child_program.h"
#include "train/rewards/reward_function.h"

namespace snug::train {

struct ProgramLimits {
  double timeout_seconds = 0;  // for the answers that it is given at once
  int64_t memory = 0;          // bytes of address space; 0: no limit
};

// One thread. The program is started when it is first asked.
class RewardProgram : public RewardFunction {
 public:
  // `command`: the program and its arguments (command_words.h). `log`: a file to whose end
  // everything goes that the program writes to standard error; empty: none. Throws
  // std::invalid_argument for a program that is not there or may not be executed.
  RewardProgram(const std::string& command, ProgramLimits limits, std::filesystem::path log);

  // Where the program ends, is late, or writes what is no reward, it is killed, started again and
  // asked again, once. Throws UserError, with what it said last, where that fails, too.
  std::vector<double> judge(std::span<const RewardedAnswer> answers) override;

 private:
  std::string ask(std::string_view text, std::vector<double>& rewards);
  void hear(std::string_view text);
  std::string last_words() const;

  std::vector<std::string> words_;
  ProgramLimits limits_;
  std::filesystem::path log_;
  std::string said_;  // the end of what it wrote to standard error
  std::unique_ptr<runtime::ChildProgram> program_;
};

}  // namespace snug::train
