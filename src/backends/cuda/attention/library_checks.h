// Answers of checks of a library, kept in a file in the cache folder, next to the calibration, for
// this GPU, driver, library and build. Not thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace snug::backends::cuda {

struct LibraryAnswer {
  bool agrees = false;
  double difference = 0;  // the largest found, as a share of the norm; below zero: there is none
  std::string why{};      // why it does not agree
  bool is_kept = true;    // false: another start may find something else
};

class LibraryChecks {
 public:
  // `machine` names all that answers depend on.
  explicit LibraryChecks(std::string machine);

  // The kept answer for a form, or what `check` answers now; a process that checks lets others
  // wait. The file counts the checks that began: where two have begun and none has ended, the
  // library ended their processes, or a user did, and the answer is no.
  const LibraryAnswer& ask(const std::string& form, const std::function<LibraryAnswer()>& check);

  // Lines for the log, each once: said when all is prepared.
  void note(const std::string& line);
  void say_notes();

 private:
  LibraryAnswer kept_or_checked(const std::string& form,
                                const std::function<LibraryAnswer()>& check);

  std::string machine_;
  std::filesystem::path file_;
  std::map<std::string, LibraryAnswer> answers_;
  std::map<std::string, bool> notes_;  // whether it was said
};

}  // namespace snug::backends::cuda
