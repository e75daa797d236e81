// The file of answers, a line each, in the order of the prompts. Lines are appended whole, so that
// a job that was killed goes on after the last whole line; what follows it is cut. Next to it,
// OUTPUT.job.json says which job it is of: another one does not touch it. One process at a time has
// it open, by a lock (flock). A file without an answer does not stay, nor its job file. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/file.h"

namespace snug::generate {

std::filesystem::path job_file_of(const std::filesystem::path& answers);

class AnswerFile {
 public:
  // Opens the file, or creates it. Throws UserError, with nothing changed, where it is of another
  // job or of none.
  AnswerFile(const std::filesystem::path& path, const nlohmann::json& job);
  ~AnswerFile();
  AnswerFile(const AnswerFile&) = delete;
  AnswerFile& operator=(const AnswerFile&) = delete;

  int64_t lines() const { return lines_; }  // that are there
  // Appends a line, given without its end.
  void write(std::string line);
  // Returns when all is on the disk.
  void finish();

 private:
  class Lock {
   public:
    // Throws UserError where another process holds it.
    explicit Lock(const std::filesystem::path& path);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int descriptor_;
  };

  void find_end();
  void check_last(const std::string& line) const;

  Lock lock_;
  base::File file_;
  int64_t bytes_ = 0;  // of whole lines
  int64_t lines_ = 0;
};

}  // namespace snug::generate
