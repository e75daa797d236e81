// What Snug tells its user: on standard error and in the log of a run. Printing never throws and
// never stops a job: a line that cannot be written (the reader of a pipe went away, the terminal
// hung up, the disk is full, the descriptor is closed) is dropped, and the log reports the first
// such loss. Results go to standard output instead, where a failed write is an error. All functions
// may be called from any thread.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <utility>

namespace snug::base {

// main calls it first. Descriptors 0 to 2 that are closed get a placeholder that can be neither
// read nor written, so that no file opened later becomes standard error. Writes to pipes without
// readers and to files beyond the size limit become errors instead of signals.
void secure_standard_streams();

// Writes the text to standard error as it is. Makes no heap allocation.
void write_to_console(std::string_view text) noexcept;

// Writes a line, given without its line end, to standard error and to the log. Characters from
// outside are escaped as shown_text.h says, and the middle of a very long line is left out.
void say_line(std::string_view line) noexcept;

// Writes a line to standard error alone, even after leave_console_to_others(): for the error that
// ends this process.
void say_last_line(std::string_view line) noexcept;

// Writes a line to the log alone: for what another process already says on standard error.
void log_line(std::string_view line) noexcept;

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say_line(fmt::format(format, std::forward<Args>(args)...));
}

// From now on lines go to the log alone, and nothing goes to standard error except errors that end
// the process. Every rank except the first calls it.
void leave_console_to_others() noexcept;

// From now on appends every line, with its time, to this file; lines that were said earlier are
// written first. If the log cannot be opened or written, the run goes on without it.
void keep_log(const std::filesystem::path& path) noexcept;

// Writes results to standard output, with characters from outside escaped as shown_text.h says;
// JSON reads back the same. Throws as flush_output does.
void write_to_output(std::string_view text);

template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_to_output(fmt::format(format, std::forward<Args>(args)...));
}

// Flushes standard output. Throws std::system_error where not everything could be written, with the
// code std::errc::broken_pipe when nobody reads any more.
void flush_output();

}  // namespace snug::base
