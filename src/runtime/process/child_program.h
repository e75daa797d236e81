// A program that runs next to this one and answers lines of text with lines of text. It has a
// process group of its own, which ends with it: what it started itself is killed, too. It inherits
// no descriptor but its three streams. Linux; one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace snug::runtime {

// A descriptor that is closed with it.
class OwnedDescriptor {
 public:
  OwnedDescriptor() = default;
  explicit OwnedDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~OwnedDescriptor() { close(); }
  OwnedDescriptor(const OwnedDescriptor&) = delete;
  OwnedDescriptor& operator=(const OwnedDescriptor&) = delete;
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : descriptor_(other.descriptor_) {
    other.descriptor_ = -1;
  }
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  int get() const { return descriptor_; }
  void close();

 private:
  int descriptor_ = -1;  // -1: none
};

class ChildProgram {
 public:
  // What the program writes to standard error, piece by piece.
  using Listener = std::function<void(std::string_view)>;

  // `words`: the program, which is looked for in PATH where it has no slash, and its arguments.
  // `memory`: bytes of address space that it may have; 0: no limit. Throws UserError where it
  // cannot be started.
  ChildProgram(const std::vector<std::string>& words, int64_t memory, Listener listener);
  // Closes the program's standard input, waits a second for its end, and kills it.
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;
  ChildProgram(ChildProgram&&) = delete;
  ChildProgram& operator=(ChildProgram&&) = delete;

  // What is asked of a program, and who takes each line that it answers, without its end: returns
  // what is wrong with it, empty where nothing is.
  struct Question {
    std::string_view text;
    size_t lines = 0;
    std::function<std::string(size_t index, const std::string& line)> take;
  };

  // Writes the text to the program's standard input and reads the lines of its standard output,
  // both at once, so that neither side waits for the other. Returns what went wrong, and the
  // program must not be asked again then; empty where nothing did.
  std::string ask(const Question& question, std::chrono::duration<double> timeout);

  // Kills the program and all that it started, without waiting.
  void kill();

 private:
  using Clock = std::chrono::steady_clock;

  std::string start(std::vector<std::string> words);
  std::string write_some(std::string_view& text);
  std::string read_lines(const Question& question, size_t& count);
  std::string end_of_program();
  void listen();
  bool wait_for_end(Clock::duration time);

  Listener listener_;
  pid_t process_ = -1;
  OwnedDescriptor input_;   // of the program: written here
  OwnedDescriptor output_;  // read here
  OwnedDescriptor errors_;  // read here
  std::string held_;        // of a line that has not ended
};

}  // namespace snug::runtime
