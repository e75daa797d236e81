#include "generate/prompts_file/answer_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/file_ending.h"
#include "base/json.h"

namespace snug::generate {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBlockBytes = int64_t{1} << 20;
constexpr mode_t kFileMode = 0666;  // less the user's mask

std::string shown_setting(const nlohmann::json& settings, const std::string& key) {
  const auto at = settings.find(key);
  if (at == settings.end() || *at == "") return fmt::format("no {}", key);
  return fmt::format("{}={}", key, at->is_string() ? at->get<std::string>() : at->dump());
}

// What a job file says. Throws where it is damaged.
nlohmann::json begun_job(const fs::path& path, const fs::path& job_file) {
  nlohmann::json begun;
  try {
    begun = base::read_json_file(job_file);
  } catch (const base::UserError&) {
  }
  if (!begun.is_object() || !begun.value("settings", nlohmann::json()).is_object())
    base::throw_user_error(
        "{} is damaged, so that it does not say which job began {}; give another file with "
        "output=, or remove both to answer everything anew",
        job_file.string(), path.string());
  return begun;
}

// Throws where a file was begun by another job, naming what differs.
void check_same_job(const fs::path& path, const nlohmann::json& begun, const nlohmann::json& job) {
  if (begun == job) return;
  const std::string advice = fmt::format(
      "; give another file with output=, or remove {} to answer everything anew", path.string());
  const nlohmann::json& settings = begun.at("settings");
  for (const auto& [key, value] : job.at("settings").items()) {
    if (settings.value(key, nlohmann::json()) != value)
      base::throw_user_error("{} was begun with {}, and this job has {}{}", path.string(),
                             shown_setting(settings, key), shown_setting(job.at("settings"), key),
                             advice);
  }
  const auto differs = [&](const char* key) {
    return begun.value(key, nlohmann::json()) != job.value(key, nlohmann::json());
  };
  const char* what = differs("prompts")         ? "other prompts"
                     : differs("chat_template") ? "another text of the chat template"
                                                : "other files of the model";
  base::throw_user_error("{} was begun with {} than there are now{}", path.string(), what, advice);
}

// Gives back the path, where answers can be written to it.
const fs::path& checked(const fs::path& path) {
  if (!base::file_ending(path.string()).packing.empty())
    base::throw_user_error("output={} would not be packed: answers are written as plain JSON lines",
                           path.string());
  base::require_regular(path);
  if (path.has_parent_path() && !fs::exists(path)) {
    base::require_writable_folder(path.parent_path());
    fs::create_directories(path.parent_path());
  }
  return path;
}

// Refuses what is of another job, or notes whose it will be. For a file that is locked.
void claim(const base::File& file, const nlohmann::json& job) {
  const fs::path job_file = job_file_of(file.path());
  if (file.size() == 0) {
    base::write_file_atomically(job_file, job.dump(2) + "\n");
    return;
  }
  if (!fs::exists(job_file))
    base::throw_user_error(
        "{} is there already, and no job of 'snug generate' wrote it ({} is missing); give another "
        "file with output=",
        file.path().string(), job_file.string());
  check_same_job(file.path(), begun_job(file.path(), job_file), job);
}

}  // namespace

fs::path job_file_of(const fs::path& answers) { return answers.string() + ".job.json"; }

AnswerFile::Lock::Lock(const fs::path& path)
    : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kFileMode)) {
  if (descriptor_ < 0) base::throw_system_error("open", path, errno);
  const bool is_taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  // Whoever held it may have removed the file in the meantime.
  struct stat status {};
  if (!is_taken && ::fstat(descriptor_, &status) == 0 && status.st_nlink > 0) return;
  ::close(descriptor_);
  base::throw_user_error("another 'snug generate' writes {} now; wait for it, or give another file",
                         path.string());
}

AnswerFile::Lock::~Lock() { ::close(descriptor_); }

AnswerFile::AnswerFile(const fs::path& path, const nlohmann::json& job)
    : lock_(checked(path)), file_(base::File::open_for_update(path)) {
  claim(file_, job);
  find_end();
  file_.truncate(bytes_);
}

// Where nothing was answered, nothing is left behind; the lock is still held.
AnswerFile::~AnswerFile() {
  if (lines_ > 0) return;
  std::error_code ignored;
  fs::remove(job_file_of(file_.path()), ignored);
  fs::remove(file_.path(), ignored);
}

// Counts the whole lines.
void AnswerFile::find_end() {
  const int64_t size = file_.size();
  std::string block;
  std::string last;     // the last whole line
  std::string pending;  // what no line end has followed yet
  for (int64_t at = 0; at < size; at += kBlockBytes) {
    block.resize(static_cast<size_t>(std::min(kBlockBytes, size - at)));
    file_.read_at(at, block.data(), std::ssize(block));
    std::string_view rest = block;
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      last = pending.append(rest.substr(0, end));
      pending.clear();
      bytes_ += std::ssize(last) + 1;
      ++lines_;
      rest.remove_prefix(end + 1);
    }
    pending.append(rest);
  }
  if (lines_ > 0) check_last(last);
}

// A file whose last line is not the answer that it must be was changed by others.
void AnswerFile::check_last(const std::string& line) const {
  const std::string name = file_.path().string();
  const auto changed = [&] {
    base::throw_user_error(
        "{}: line {} is not the answer with \"index\": {}, so that the file was changed since it "
        "was written; give another file with output=",
        name, lines_, lines_ - 1);
  };
  nlohmann::json answer;
  try {
    answer = base::parse_json(line, name);
  } catch (const base::UserError&) {
    changed();
  }
  if (!answer.is_object() || answer.value("index", nlohmann::json()) != lines_ - 1) changed();
}

void AnswerFile::write(std::string line) {
  line += '\n';
  file_.write_at(bytes_, line.data(), std::ssize(line));
  bytes_ += std::ssize(line);
  ++lines_;
}

void AnswerFile::finish() { file_.sync(); }

}  // namespace snug::generate
